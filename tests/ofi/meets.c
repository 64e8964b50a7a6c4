/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meets.c - a program for any MPI in which processes that MPI_Init did not bring together meet, and add up a number
 * of each. `meets within`: the even ranks accept the odd ones; `meets accept FILE` and `meets connect FILE`: one job
 * accepts another, which finds the port in FILE; `meets spawn`: the job starts two more. One rank says how many met. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char port[MPI_MAX_PORT_NAME];

static void write_port(const char *name)
{
    char part[512];
    snprintf(part, sizeof part, "%s.part", name);
    FILE *f = fopen(part, "w");
    if (!f || fputs(port, f) < 0 || fclose(f) || rename(part, name))
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static void read_port(const char *name)
{
    for (int i = 0; i < 6000; i++, usleep(10000)) {
        FILE *f = fopen(name, "r");
        if (!f)
            continue;
        if (!fgets(port, sizeof port, f))
            MPI_Abort(MPI_COMM_WORLD, 3);
        fclose(f);
        return;
    }
    MPI_Abort(MPI_COMM_WORLD, 4);
}

/* Everybody's number is 1 more than twice its rank: a merged communicator of n has a sum of n * n. */
static void count(MPI_Comm others, int second)
{
    int rank, size, mine, sum = 0;
    MPI_Comm all;
    MPI_Intercomm_merge(others, second, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    mine = 2 * rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&others);
    if (sum != size * size)
        MPI_Abort(MPI_COMM_WORLD, 5);
    if (rank == 0)
        printf("%d have met\n", size);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Comm others, mine = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&others);
    int accepts = strcmp(argv[1], "accept") == 0;
    if (others != MPI_COMM_NULL) {
        count(others, 1);
    } else if (strcmp(argv[1], "spawn") == 0) {
        MPI_Comm_spawn(argv[0], argv + 1, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
        count(others, 0);
    } else {
        if (strcmp(argv[1], "within") == 0) {
            accepts = rank % 2 == 0;
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &mine);
        }
        if (accepts && rank == 0)
            MPI_Open_port(MPI_INFO_NULL, port);
        if (accepts && rank == 0 && argc > 2)
            write_port(argv[2]);
        else if (rank == 0 && argc > 2)
            read_port(argv[2]);
        if (argc == 2)
            MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (accepts)
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, mine, &others);
        else
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, mine, &others);
        count(others, !accepts);
    }
    MPI_Finalize();
    return 0;
}
