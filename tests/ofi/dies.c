/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dies.c - a program for any MPI: the last rank is killed, or its host is cut off, while the others wait for it.
 * Each of them prints "told of it" with the time that it took and exits with 0, or with "cut" 3; with 1 if its call
 * succeeded: `dies WAY kill`, or `dies WAY cut FILE`, which makes FILE when all ranks have met. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char bytes[1 << 20];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int flood(int last)
{
    int error = 0;
    for (int i = 0; error == 0 && i < 300000; i++) {
        error = MPI_Send(bytes, 8, MPI_CHAR, last, 5, MPI_COMM_WORLD);
        usleep(300);
    }
    return error;
}

static int wait_for(const char *way, int last)
{
    if (strcmp(way, "recv") == 0)
        return MPI_Recv(bytes, 1, MPI_CHAR, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(way, "probe") == 0)
        return MPI_Probe(last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(way, "ssend") == 0)
        return MPI_Ssend(bytes, 1, MPI_CHAR, last, 5, MPI_COMM_WORLD);
    if (strcmp(way, "long") == 0)
        return MPI_Send(bytes, sizeof bytes, MPI_CHAR, last, 5, MPI_COMM_WORLD);
    if (strcmp(way, "barrier") == 0)
        return MPI_Barrier(MPI_COMM_WORLD);
    return flood(last);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int other = 0; other < size - 1; other++) { /* all have met the last one */
        if (rank == size - 1)
            MPI_Send(bytes, 1, MPI_CHAR, other, 6, MPI_COMM_WORLD);
        else if (rank == other)
            MPI_Recv(bytes, 1, MPI_CHAR, size - 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1 && strcmp(argv[2], "kill") == 0) {
        usleep(300000); /* the others wait by now */
        raise(SIGKILL);
    }
    if (rank == size - 1) {
        fclose(fopen(argv[3], "w"));
        sleep(200);
        _exit(0);
    }
    double since = now();
    int error = wait_for(argv[1], size - 1);
    printf("rank %d: %s after %.1f s\n", rank, error ? "told of it" : "not told of it", now() - since);
    fflush(stdout);
    _exit(!error ? 1 : strcmp(argv[2], "cut") == 0 ? 3 : 0);
}
