/* SPDX-License-Identifier: BSD-3-Clause
 *
 * many.c - a program for any MPI with many more ranks than processors: each exchanges a message with each other one,
 * and sleeps while it waits. Rank 0 prints "N ranks: rss R pss P", the KiB of the largest rank, with each page counted
 * whole and with it divided by those who share it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void await(MPI_Request *r, int count)
{
    int done = 0;
    for (;;) {
        MPI_Testall(count, r, &done, MPI_STATUSES_IGNORE);
        if (done)
            return;
        usleep(20000);
    }
}

static void measure(long kib[2])
{
    char line[256];
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "Rss: %ld", &kib[0]);
        (void)sscanf(line, "Pss: %ld", &kib[1]);
    }
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    int rank, size;
    long kib[2] = {0, 0}, most[2];
    MPI_Request r[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Request *all = malloc(2 * (size_t)size * sizeof *all);
    int *got = malloc((size_t)size * sizeof *got);
    for (int i = 0; i < size; i++) {
        MPI_Irecv(&got[i], 1, MPI_INT, i, 1, MPI_COMM_WORLD, &all[2 * i]);
        MPI_Isend(&rank, 1, MPI_INT, i, 1, MPI_COMM_WORLD, &all[2 * i + 1]);
    }
    await(all, 2 * size);
    for (int i = 0; i < size; i++)
        if (got[i] != i) {
            printf("rank %d: %d came from %d\n", rank, got[i], i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    MPI_Ibarrier(MPI_COMM_WORLD, &r[0]); /* nobody has left when the pages are counted */
    await(r, 1);
    measure(kib);
    MPI_Ireduce(kib, most, 2, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD, &r[0]);
    await(r, 1);
    if (rank == 0)
        printf("%d ranks: rss %ld pss %ld\n", size, most[0], most[1]);
    free(all);
    free(got);
    MPI_Finalize();
    return 0;
}
