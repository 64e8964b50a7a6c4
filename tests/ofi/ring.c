/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.c - a program for any MPI: each rank sends to the next one and receives from the one before, in lengths from one
 * byte to 4 MiB, checks each byte, and adds all ranks. Prints "ring of N". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void pass(int rank, int size, size_t n)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned char *out = malloc(n), *in = calloc(1, n);
    MPI_Request both[2];
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)(i * 7 + i / 251 + (size_t)rank);
    MPI_Irecv(in, (int)n, MPI_BYTE, before, 7, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, (int)n, MPI_BYTE, next, 7, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < n; i++)
        if (in[i] != (unsigned char)(i * 7 + i / 251 + (size_t)before)) {
            printf("rank %d: byte %zu of %zu is wrong\n", rank, i, n);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t n = 1; n <= (size_t)4 << 20; n *= 4)
        pass(rank, size, n);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && sum == size * (size - 1) / 2)
        printf("ring of %d\n", size);
    MPI_Finalize();
    return 0;
}
