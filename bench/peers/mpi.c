/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.c - any MPI under measurement, in the loops that MPI benchmarks use: MPI_Send and MPI_Recv to and fro; for rate
 * 64 MPI_Isend into 64 posted receives, then one short answer; for bandwidth windows of MPI_Isend, of which up to 64
 * find their receive posted; for Panda's multicast MPI_Bcast and MPI_Barrier. */
#include "common.h"

#include <ctype.h>
#include <link.h>
#include <mpi.h>
#include <stdio.h>

enum { TAG = 1, ANSWER = 2 };

struct mpi {
    MPI_Request request[PEER_DEPTH];
    int used;         /* requests that may not be complete */
    uint64_t posted;  /* rank 1: receives posted, counted as s->got */
    uint64_t expects; /* s->got after this window */
};
static struct mpi mpi;
static const char *way;

/* "Open MPI v4.1.4, package: Debian..." and "MPICH Version:\t4.0.2\n...": one line, the name and the number. */
static void version(char out[64])
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n = 0;
    size_t to = 0;
    MPI_Get_library_version(text, &n);
    for (const char *p = text; *p && *p != ',' && *p != '\n' && to < 62; p++) {
        bool space = isspace((unsigned char)*p);
        if (!space || (to && out[to - 1] != ' '))
            out[to++] = space ? ' ' : *p;
    }
    out[to] = 0;
}

static int is_provider(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    return strstr(info->dlpi_name, "librnl-fi.so") != NULL;
}

static int mpi_open(struct bench_process *s)
{
    int rank, size;
    char name[64];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2)
        return bench_process_fail(s,
                                  "its launcher started jobs of %d instead of one of 2: do launcher and library belong "
                                  "together?",
                                  size);
    if (!strcmp(way, "rnl below") && !dl_iterate_phdr(is_provider, NULL)) /* MPICH over UCX goes on without a word */
        return bench_process_fail(s, "this MPI does not use libfabric, so it did not take Runnel's provider");
    s->rank = (unsigned)rank;
    s->own = &mpi;
    version(name);
    bool may = peer_may_read(s);
    peer_about(s, "%s, %s, process_vm_readv %s", name, way, may ? "allowed" : "refused");
    return 0;
}

static void mpi_close(struct bench_process *s)
{
    (void)s;
    MPI_Finalize();
}

static int other(const struct bench_process *s)
{
    return (int)(1 - s->rank);
}

static void wait_for_all(void)
{
    MPI_Waitall(mpi.used, mpi.request, MPI_STATUSES_IGNORE);
    mpi.used = 0;
}

static int push(struct bench_process *s)
{
    int found;
    (void)s;
    MPI_Iprobe(MPI_ANY_SOURCE, ANSWER, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    return 0;
}

static int mpi_prepare(struct bench_process *s, const struct bench_order *o)
{
    (void)o;
    wait_for_all();
    return peer_settle(s, push);
}

static int mpi_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    int bytes = (int)s->bytes, to = other(s);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t t0 = h ? bench_ticks() : 0;
        if (s->rank == 0)
            MPI_Send(s->pool, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
        MPI_Recv(s->to, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (s->rank == 1)
            MPI_Send(s->pool, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
        if (h)
            bench_lap(s, h, t0);
    }
    s->got += n;
    return 0;
}

static int mpi_stream(struct bench_process *s, uint64_t n)
{
    int bytes = (int)s->bytes, to = other(s);
    uint64_t depth = peer_depth(s), some;
    char answer = 0;
    for (uint64_t done = 0; done < n; done += some) {
        some = n - done < depth ? n - done : depth;
        for (uint64_t i = 0; i < some; i++) {
            unsigned char *at = (s->rank == 0 ? s->pool : s->spare) + i * s->bytes;
            uint64_t number = done + i;
            if (s->rank == 0) {
                memcpy(at, &number, s->bytes < 8 ? s->bytes : 8);
                MPI_Isend(at, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &mpi.request[i]);
            } else
                MPI_Irecv(at, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &mpi.request[i]);
        }
        MPI_Waitall((int)some, mpi.request, MPI_STATUSES_IGNORE);
        if (s->rank == 0) {
            MPI_Recv(&answer, 1, MPI_BYTE, to, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            for (uint64_t i = 0; i < some; i++)
                bench_count(s, s->spare + i * s->bytes, s->bytes);
            MPI_Send(&answer, 1, MPI_BYTE, to, ANSWER, MPI_COMM_WORLD);
        }
    }
    return 0;
}

static void post(struct bench_process *s)
{
    for (; mpi.used < PEER_DEPTH && mpi.posted < mpi.expects; mpi.posted++)
        MPI_Irecv(s->to + mpi.posted % s->slots * s->bytes, (int)s->bytes, MPI_BYTE, other(s), TAG, MPI_COMM_WORLD,
                  &mpi.request[mpi.used++]);
}

static int mpi_expect(struct bench_process *s)
{
    wait_for_all();
    peer_settle(s, push);
    if (s->rank == 1) {
        mpi.posted = s->got;
        mpi.expects = s->got + s->slots;
        post(s);
    }
    return 0;
}

static int mpi_put(struct bench_process *s, const void *from, size_t n)
{
    if (mpi.used == PEER_DEPTH)
        wait_for_all();
    MPI_Isend(from, (int)n, MPI_BYTE, other(s), TAG, MPI_COMM_WORLD, &mpi.request[mpi.used++]);
    return 0;
}

static int mpi_poll(struct bench_process *s)
{
    int done = 0;
    if (s->rank == 1) {
        s->got += (uint64_t)mpi.used;
        wait_for_all();
        post(s);
    } else if (mpi.used == 0) { /* what was sent may still need a push */
        push(s);
    } else {
        for (int i = 0; i < PEER_PUSHES && !done; i++)
            MPI_Testall(mpi.used, mpi.request, &done, MPI_STATUSES_IGNORE);
        if (done)
            mpi.used = 0;
    }
    return 0;
}

/* What stands for a multicast that everybody, its sender too, has in one order. */
static int mpi_run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    const uint64_t t0 = bench_now_ns();
    for (uint64_t i = 0; i < o->count; i++) {
        MPI_Bcast(s->rank == 1 ? s->pool : s->to, (int)o->bytes, MPI_BYTE, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    a->value = (double)(bench_now_ns() - t0) / (double)o->count;
    return 0;
}

static const struct bench_api api = {
    .name = "mpi",
    .open = mpi_open,
    .close = mpi_close,
    .prepare = mpi_prepare,
    .ping = mpi_ping,
    .stream = mpi_stream,
    .put = mpi_put,
    .poll = mpi_poll,
    .expect = mpi_expect,
    .run = mpi_run,
};

int main(int argc, char **argv)
{
    struct peer_args a = peer_start(argc, argv);
    way = a.way;
    return bench_process_run(a.area, a.pair, &api, a.rank);
}
