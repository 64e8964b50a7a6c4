/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.c - a node agent's connections to ranks that speak PMI-1, and its part in fences: mpi.h. A line has one reply,
 * which the rank reads before it says more; one that does not is no longer listened to. */
#include "launcher/mpi/mpi.h"

#include "launcher/mpi/pmi.h"
#include "launcher/mpi/pmix.h"
#include "launcher/node_agent_internal.h"
#include "launcher/spawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct line { /* of a rank */
    uv_pipe_t pipe;
    struct rnl_node_agent *agent;
    struct rnl_pmi_caller caller;
    uint32_t rank;
    bool open;
    size_t have;
    char at[RNL_PMI_LINE];
};
struct rnl_mpi {
    struct rnl_pmi pmi;
    struct rnl_pmix_server *pmix; /* NULL: it is not served */
    bool sent[RNL_FENCES];        /* FENCE, which has not come back */
    struct line line[];           /* of this host's ranks */
};

static void hang_up(struct line *l)
{
    if (l->open)
        uv_close((uv_handle_t *)&l->pipe, NULL);
    l->open = false;
}

static void reply_to(struct line *l, const char *reply)
{
    const uv_buf_t buffer = {.base = (char *)(uintptr_t)reply, .len = strlen(reply)};
    if (l->open && uv_try_write((uv_stream_t *)&l->pipe, &buffer, 1) != (int)buffer.len)
        hang_up(l); /* it does not read */
}

static void receive_line(struct line *l)
{
    struct rnl_node_agent *n = l->agent;
    char reply[RNL_PMI_LINE];
    switch (rnl_pmi_receive(&n->mpi->pmi, &l->caller, l->at, reply)) {
    case RNL_PMI_NO_COMMAND:
        rnl_node_agent_report(n, "rank %u on %s says something at PMI_FD that is no PMI-1; it is not served any more",
                              l->rank, n->host);
        hang_up(l);
        return;
    case RNL_PMI_ABORTS: /* and waits for its end */
        rnl_process_abort(n, l->rank, l->caller.status);
        return;
    case RNL_PMI_NO_SPAWN:
        rnl_node_agent_report(n,
                              "rank %u on %s wants to start more processes (MPI_Comm_spawn), which `runnel run` does "
                              "not do; start all of them at once",
                              l->rank, n->host);
        reply_to(l, reply);
        return;
    case RNL_PMI_REPLIES:
        reply_to(l, reply);
        return;
    case RNL_PMI_SILENT:
        return;
    }
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct line *l = handle->data;
    (void)suggested;
    *out = uv_buf_init(l->at + l->have, (unsigned)(sizeof l->at - l->have));
}

static void on_bytes(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer)
{
    struct line *l = stream->data;
    char *end;
    (void)buffer;
    l->have += bytes > 0 ? (size_t)bytes : 0;
    while (l->open && (end = memchr(l->at, '\n', l->have))) {
        *end = '\0';
        receive_line(l);
        l->have -= (size_t)(end + 1 - l->at);
        memmove(l->at, end + 1, l->have);
    }
    if (l->open && l->have == sizeof l->at) { /* no line is so long */
        l->at[0] = '\0';
        receive_line(l);
    }
    if (bytes < 0)
        hang_up(l);
}

int rnl_mpi_add(struct rnl_node_agent *n, uint32_t rank)
{
    struct line *l = &n->mpi->line[rank - n->first];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    l->agent = n;
    l->rank = rank;
    l->open = true;
    (void)uv_pipe_init(n->loop, &l->pipe, 0);
    l->pipe.data = l;
    n->how.pmi = ends[1];
    int e = uv_pipe_open(&l->pipe, ends[0]);
    if (e < 0)
        close(ends[0]);
    e = e < 0 ? e : uv_read_start((uv_stream_t *)&l->pipe, give_buffer, on_bytes);
    if (e == 0 && n->mpi->pmix)
        e = rnl_pmix_server_add(n->mpi->pmix, rank, &n->how.variables);
    if (e < 0)
        hang_up(l);
    return e;
}

void rnl_mpi_end(struct rnl_node_agent *n, uint32_t rank)
{
    if (n->mpi)
        hang_up(&n->mpi->line[rank - n->first]);
}

void rnl_mpi_prepare(struct rnl_node_agent *n)
{
    char why[300];
    const bool said = rnl_node_agent_is(n, RNL_JOB_MPI), open_mpi = said || rnl_program_names(n->path, "libmpi.so.");
    if (!open_mpi && !rnl_program_names(n->path, "libmpich.so."))
        return;
    /* A single rank of Open MPI does without PMIx. One of MPICH that has no PMI-1 starts an mpiexec, and waits for it.
     * */
    const bool pmix = open_mpi && n->spec.size > 1;
    n->mpi = calloc(1, sizeof *n->mpi + n->count * sizeof n->mpi->line[0]);
    if (!n->mpi) {
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "no memory for the connections of %u ranks", n->count);
        return;
    }
    rnl_pmi_init(&n->mpi->pmi, n->spec.number, n->spec.hosts, n->spec.at);
    /* As mpirun does: Open MPI's ranks, else, keep a processor for a whole time slice while another waits for it. */
    if (open_mpi && (int)n->count > rnl_bind_count())
        setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (pmix)
        n->mpi->pmix = rnl_pmix_server_new(n->loop, &n->spec, n->host, why, sizeof why);
    if (pmix && !n->mpi->pmix)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM,
                            "'%s' is a program of Open MPI, or of its kin, whose ranks find each other by PMIx; each "
                            "would be alone: %s",
                            n->spec.argv[0], why);
}

/* ---- fences ---- */

/* Whether all ranks that run are in the barrier, and one is. */
static bool are_inside(const struct rnl_node_agent *n)
{
    bool any = false;
    for (uint32_t i = 0; i < n->count; i++) {
        const bool inside = n->mpi->line[i].caller.inside;
        if (!inside && !n->slot[n->first + i].exited)
            return false;
        any |= inside;
    }
    return any;
}

static void send_fence(struct rnl_node_agent *n, uint32_t which, const void *bytes, size_t count)
{
    n->mpi->sent[which] = true;
    rnl_control_send_parts(&n->control, RNL_CONTROL_FENCE, &which, sizeof which, bytes, count);
}

void rnl_mpi_work(struct rnl_node_agent *n)
{
    struct rnl_mpi *m = n->mpi;
    const void *bytes;
    size_t count;
    if (!m || n->phase != RNL_NODE_AGENT_RUNNING)
        return;
    if (!m->sent[RNL_FENCE_PMI] && are_inside(n)) {
        if (m->pmi.news.failed)
            rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "no memory for what the ranks tell each other");
        send_fence(n, RNL_FENCE_PMI, m->pmi.news.at, m->pmi.news.bytes);
        rnl_pack_free(&m->pmi.news);
    }
    if (m->pmix && !m->sent[RNL_FENCE_PMIX] && rnl_pmix_server_fence(m->pmix, &bytes, &count))
        send_fence(n, RNL_FENCE_PMIX, bytes, count);
}

int rnl_mpi_receive(struct rnl_node_agent *n, struct rnl_unpack *u)
{
    const uint32_t which = rnl_unpack_32(u);
    struct rnl_mpi *m = n->mpi;
    if (u->bad || which >= RNL_FENCES || !m || !m->sent[which])
        return -1;
    m->sent[which] = false;
    if (which == RNL_FENCE_PMIX) {
        rnl_pmix_server_fenced(m->pmix, u->at, u->left);
        return 0;
    }
    if (rnl_pmi_learn(&m->pmi, u->at, u->left) < 0)
        rnl_node_agent_fail(
            n, RNL_EXIT_SYSTEM,
            "the ranks of this job tell each other more than %d bytes at their start: start fewer ranks",
            RNL_PMI_BYTES);
    for (uint32_t i = 0; i < n->count; i++) {
        if (m->line[i].caller.inside)
            reply_to(&m->line[i], "cmd=barrier_out\n");
        m->line[i].caller.inside = false;
    }
    return 0;
}

void rnl_mpi_free(struct rnl_node_agent *n)
{
    if (!n->mpi)
        return;
    rnl_pmi_free(&n->mpi->pmi);
    free(n->mpi);
}
