/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flood.c - a program for any MPI: each rank sends a thousand messages of 64 KiB to each other one before it receives
 * any, and takes them in the reverse order. Rank 0 prints "flood among N: grew by K KiB a peer", for the rank that grew
 * most. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { COUNT = 1000, BYTES = 64 << 10 };

static long resident(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* Message i is BYTES from out[i] on. */
static char out[COUNT + BYTES], in[BYTES];

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Request *r = malloc((size_t)size * COUNT * sizeof *r);
    int requests = 0;
    for (int i = 0; i < COUNT + BYTES; i++)
        out[i] = (char)(i * 7 + i / 251 + rank);
    memset(in, 1, sizeof in);
    for (int peer = 0; peer < size; peer++) /* they have met */
        MPI_Sendrecv(out, 1, MPI_CHAR, peer, COUNT, in, 1, MPI_CHAR, peer, COUNT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    long before = resident(), grew, most;
    for (int i = 0; i < COUNT; i++)
        for (int peer = 0; peer < size; peer++)
            if (peer != rank)
                MPI_Isend(out + i, BYTES, MPI_CHAR, peer, i, MPI_COMM_WORLD, &r[requests++]);
    for (int i = COUNT - 1; i >= 0; i--)
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank)
                continue;
            MPI_Recv(in, BYTES, MPI_CHAR, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int k = 0; k < BYTES; k++)
                if (in[k] != (char)((i + k) * 7 + (i + k) / 251 + peer)) {
                    printf("rank %d: message %d of rank %d differs at %d\n", rank, i, peer, k);
                    MPI_Abort(MPI_COMM_WORLD, 1);
                }
        }
    MPI_Waitall(requests, r, MPI_STATUSES_IGNORE);
    grew = (resident() - before) / (size > 1 ? size - 1 : 1);
    MPI_Reduce(&grew, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("flood among %d: grew by %ld KiB a peer\n", size, most);
    free(r);
    MPI_Finalize();
    return 0;
}
