/* SPDX-License-Identifier: BSD-3-Clause
 *
 * onesided.c - one-sided MPI: every rank puts, gets and accumulates in the window of the next one between fences; with
 * the argument "computes" then in that of rank 0, which computes and calls nothing of MPI. Rank 0 prints "one-sided
 * among N". */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 40000, ADDS = 200, PATIENCE_S = 60 };

#define MUST(x)                                                   \
    do {                                                          \
        if (!(x)) {                                               \
            printf("rank %d: %s, line %d\n", rank, #x, __LINE__); \
            fflush(stdout);                                       \
            MPI_Abort(MPI_COMM_WORLD, 1);                         \
        }                                                         \
    } while (0)

static int rank, size, next;

static void between_fences(MPI_Win w, long *window)
{
    static long from[WORDS], back[WORDS], sums[WORDS];
    for (int i = 0; i < WORDS; i++) {
        from[i] = rank * 1000000L + i;
        sums[i] = 1;
    }
    MPI_Win_fence(0, w);
    MPI_Put(from, WORDS, MPI_LONG, next, 0, WORDS, MPI_LONG, w);
    MPI_Win_fence(0, w);
    for (int i = 0; i < WORDS; i++)
        MUST(window[i] == (rank + size - 1) % size * 1000000L + i);
    MPI_Get(back, WORDS, MPI_LONG, next, 0, WORDS, MPI_LONG, w);
    MPI_Win_fence(0, w);
    MUST(memcmp(back, from, sizeof back) == 0);
    for (int to = 0; to < size; to++)
        MPI_Accumulate(sums, WORDS, MPI_LONG, to, 0, WORDS, MPI_LONG, MPI_SUM, w);
    MPI_Win_fence(0, w);
    for (int i = 0; i < WORDS; i++)
        MUST(window[i] == (rank + size - 1) % size * 1000000L + i + size);
    MPI_Win_fence(0, w);
}

/* All but rank 0 add to a word of it, while it computes until it has seen them all. */
static void while_it_computes(MPI_Win w, volatile long *window)
{
    window[0] = window[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        time_t begun = time(NULL);
        while (window[1] != (size - 1) * ADDS)
            MUST(time(NULL) - begun < PATIENCE_S);
    } else {
        long one = 1, old, last = -1, seen;
        MPI_Win_lock_all(0, w);
        for (int i = 0; i < ADDS; i++) {
            MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, w);
            MPI_Win_flush(0, w);
            MUST(old > last && old < (size - 1) * ADDS);
            last = old;
            MPI_Get(&seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, w);
            MPI_Win_flush(0, w);
            MUST(seen > old);
            MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, w);
            MPI_Win_flush(0, w);
        }
        MPI_Win_unlock_all(w);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(rank != 0 || (window[0] == (size - 1) * ADDS && window[1] == (size - 1) * ADDS));
}

/* Each operation on one word of the own window and of the next rank's, by fetching and by accumulating. */
static void each_operation(MPI_Win w, long *window)
{
    const struct {
        MPI_Op op;
        long result;
    } cases[] = {{MPI_SUM, 15},  {MPI_PROD, 54}, {MPI_MAX, 9}, {MPI_MIN, 6},  {MPI_BAND, 0},    {MPI_BOR, 15},
                 {MPI_BXOR, 15}, {MPI_LAND, 1},  {MPI_LOR, 1}, {MPI_LXOR, 0}, {MPI_REPLACE, 9}, {MPI_NO_OP, 6}};
    for (unsigned i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const MPI_Op op = cases[i / 2].op;
        const int to = i % 2 == 0 ? next : rank;
        long nine = 9, old = 0;
        window[0] = window[1] = 6;
        MPI_Win_fence(0, w);
        MPI_Fetch_and_op(&nine, &old, MPI_LONG, to, 0, op, w);
        if (op != MPI_NO_OP)
            MPI_Accumulate(&nine, 1, MPI_LONG, to, 1, 1, MPI_LONG, op, w);
        MPI_Win_fence(0, w);
        MUST(old == 6 && window[0] == cases[i / 2].result && (op == MPI_NO_OP || window[1] == window[0]));
    }
    MPI_Win_fence(0, w);
}

int main(int argc, char **argv)
{
    static long window[WORDS];
    MPI_Win w;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    MPI_Win_create(window, sizeof window, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    between_fences(w, window);
    each_operation(w, window);
    if (argc > 1 && strcmp(argv[1], "computes") == 0)
        while_it_computes(w, window);
    MPI_Win_free(&w);
    if (rank == 0)
        printf("one-sided among %d\n", size);
    MPI_Finalize();
    return 0;
}
