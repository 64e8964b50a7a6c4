/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads.c - a program for any MPI: four threads of each rank talk at once, each on a communicator and a window of its
 * own: `threads [ROUNDS]`. Rank 0 prints "threads of N". */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, LONG = 50000, SHORT = 10 };

static int rank, size, rounds = 20;

static void must(int holds, const char *what, int thread)
{
    if (holds)
        return;
    printf("rank %d, thread %d: %s\n", rank, thread, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

struct worker {
    pthread_t thread;
    MPI_Comm comm;
    MPI_Win win;
    int number;
    long *memory;
};

static int value(int thread, int round, int from, int i)
{
    return ((thread * 100 + round) * 100 + from) * 1000 + i % 997;
}

/* To the next rank, from the one before, short and long, with the same tags as the other threads. */
static void messages(const struct worker *w, int round, int *out, int *in)
{
    int count = round % 4 == 3 ? LONG : SHORT, next = (rank + 1) % size, before = (rank - 1 + size) % size;
    MPI_Request r[2];
    for (int i = 0; i < count; i++)
        out[i] = value(w->number, round, rank, i);
    memset(in, 0, (size_t)count * sizeof *in);
    MPI_Irecv(in, count, MPI_INT, before, round, w->comm, &r[0]);
    MPI_Isend(out, count, MPI_INT, next, round, w->comm, &r[1]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        must(in[i] == value(w->number, round, before, i), "a message is not what was sent", w->number);
}

static void collectives(const struct worker *w, int round)
{
    int mine = rank + w->number, sum = 0, root = round % size,
        word = rank == root ? value(w->number, round, root, 0) : 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, w->comm);
    must(sum == size * (size - 1) / 2 + size * w->number, "a sum is wrong", w->number);
    MPI_Bcast(&word, 1, MPI_INT, root, w->comm);
    must(word == value(w->number, round, root, 0), "a broadcast is wrong", w->number);
}

/* memory: what the rank before puts, and a sum of all. */
static void memory(const struct worker *w, int round)
{
    int next = (rank + 1) % size, before = (rank - 1 + size) % size;
    long put = value(w->number, round, rank, 0), one = 1, got = 0;
    MPI_Win_lock_all(0, w->win);
    MPI_Put(&put, 1, MPI_LONG, next, 0, 1, MPI_LONG, w->win);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, w->win);
    MPI_Win_flush_all(w->win);
    MPI_Barrier(w->comm);
    MPI_Get(&got, 1, MPI_LONG, rank, 0, 1, MPI_LONG, w->win);
    MPI_Win_flush(rank, w->win);
    must(got == value(w->number, round, before, 0), "a put is not there", w->number);
    MPI_Get(&got, 1, MPI_LONG, 0, 1, 1, MPI_LONG, w->win);
    MPI_Win_flush(0, w->win);
    must(got == (long)size * (round + 1), "a sum in memory is wrong", w->number);
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
}

static void *run(void *arg)
{
    struct worker *w = arg;
    int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int round = 0; round < rounds; round++) {
        messages(w, round, out, in);
        collectives(w, round);
        memory(w, round);
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker worker[THREADS];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    must(provided == MPI_THREAD_MULTIPLE, "this MPI is not for several threads", 0);
    if (argc > 1)
        rounds = atoi(argv[1]);
    for (int i = 0; i < THREADS; i++) {
        worker[i].number = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &worker[i].comm);
        MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, worker[i].comm, &worker[i].memory,
                         &worker[i].win);
        memset(worker[i].memory, 0, 2 * sizeof(long));
        MPI_Barrier(worker[i].comm);
    }
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&worker[i].thread, NULL, run, &worker[i]) == 0, "no thread can be made", i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(worker[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        MPI_Win_free(&worker[i].win);
        MPI_Comm_free(&worker[i].comm);
    }
    if (rank == 0)
        printf("threads of %d\n", size);
    MPI_Finalize();
    return 0;
}
