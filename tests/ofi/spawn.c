/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn.c - a program for any MPI: asks for two more processes, and prints "refused" if there are none. With "abort",
 * rank 1 aborts the job with 7 instead; with "die", it is killed before the others meet it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Comm more;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && rank == 1) {
        if (strcmp(argv[1], "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 7);
        raise(SIGKILL);
    }
    if (argc > 1)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (MPI_Comm_spawn("true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &more, MPI_ERRCODES_IGNORE))
        printf("refused\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
