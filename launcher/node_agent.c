/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_agent.c - `runnel agent`, and the agent of the launcher's own host: its control stream, and its life. */
#include "launcher/node_agent_internal.h"

#include "base/bug.h"
#include "base/secret.h"
#include "net/socket/xdp/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    JOB_MS = 60000,    /* for the launcher's first frame */
    SILENT_MS = 60000, /* a launcher of which nothing is heard for so long is gone, unless it said that it stops */
};

static void on_silence(uv_timer_t *timer)
{
    struct rnl_node_agent *n = timer->data;
    if (!n->suspended)
        n->phase = RNL_NODE_AGENT_OVER;
}

static void send_word(void *arg, const struct rnl_word *w)
{
    struct rnl_node_agent *n = arg;
    rnl_control_send(&n->control, RNL_CONTROL_WORD, w, sizeof *w);
}

/* ---- what the launcher says: each of these returns 0, or -1 if no launcher of this release says that ---- */

static bool set_environment(char **environment)
{
    bool good = clearenv() == 0;
    for (char **e = environment; *e && good; e++)
        if (strchr(*e, '=') && strncmp(*e, "RUNNEL_FD=", sizeof "RUNNEL_FD=" - 1) != 0)
            good = putenv(*e) == 0;
    return good;
}

/* What an examination needs of a job is its sockets. */
static void prepare_examination(struct rnl_node_agent *n)
{
    struct rnl_host_facts facts;
    rnl_host_facts_collect(&facts);
    rnl_control_send(&n->control, RNL_CONTROL_FACTS, &facts, sizeof facts);
    rnl_node_network_open(n);
}

static void prepare(struct rnl_node_agent *n)
{
    char sentence[512];
    if (rnl_node_agent_is(n, RNL_JOB_EXAMINE)) {
        prepare_examination(n);
        return;
    }
    if (!set_environment(n->spec.environment)) {
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "no memory for the environment");
        return;
    }
    if (!rnl_node_agent_is(n, RNL_JOB_EXPECTED)) {
        if (n->spec.folder[0] != '\0' && chdir(n->spec.folder) < 0) {
            rnl_node_agent_fail(n, RNL_EXIT_SYSTEM,
                                "cannot enter the working directory '%.200s': %s; start the job in one that is there "
                                "on all hosts",
                                n->spec.folder, strerror(errno));
            return;
        }
        const int status = rnl_spawn_find(n->spec.argv[0], &n->path, sentence, sizeof sentence);
        if (status != 0) {
            rnl_node_agent_fail(n, status, "%s", sentence);
            return;
        }
    }
    rnl_processes_prepare(n);
    if (n->phase == RNL_NODE_AGENT_PROBING && !n->expected)
        rnl_mpi_prepare(n);
    if (n->phase == RNL_NODE_AGENT_PROBING && n->expected)
        rnl_expected_deal(n);
    if (n->phase == RNL_NODE_AGENT_PROBING)
        rnl_node_network_open(n);
}

static int receive_job(struct rnl_node_agent *n, const struct rnl_control_frame *f)
{
    if (n->phase != RNL_NODE_AGENT_EXPECTING || rnl_job_spec_unpack(f->body, f->bytes, &n->spec) < 0 ||
        rnl_node_agent_is(n, RNL_JOB_EXPECTED) != (n->expected != NULL))
        return -1;
    const struct rnl_job_host *at = &n->spec.at[n->spec.host];
    struct rnl_pack p = {.at = NULL};
    n->phase = RNL_NODE_AGENT_PROBING;
    n->first = at->first;
    n->count = at->count;
    memcpy(n->host, at->name, sizeof n->host);
    (void)uv_timer_stop(&n->silence);
    if (!rnl_node_agent_is(n, RNL_JOB_LOCAL))
        rnl_timer_start(&n->silence, on_silence, SILENT_MS, 0);
    prepare(n);
    if (n->phase != RNL_NODE_AGENT_PROBING)
        return 0;
    if (n->spec.hosts > 1)
        rnl_host_info_pack(&p, &n->info[n->spec.host]);
    rnl_control_send_pack(&n->control, RNL_CONTROL_HERE, &p);
    rnl_pack_free(&p);
    return 0;
}

/* The agent of the ranks' membership: its own leader, if there is no other host. */
static int make_agent(struct rnl_node_agent *n)
{
    const uint32_t size = n->spec.size;
    const bool alone = n->spec.hosts == 1;
    struct rnl_agent_options opt = {.size = size,
                                    .keep_going = rnl_node_agent_is(n, RNL_JOB_KEEP_GOING),
                                    .silence_ms = (uint32_t)n->spec.silence_ms,
                                    .publish = alone ? NULL : send_word,
                                    .arg = n,
                                    .first = alone ? 0 : n->first,
                                    .count = alone ? 0 : n->count,
                                    .sockets = n->sockets};
    struct rnl_rank_location *places = n->sockets ? calloc(size, sizeof *places) : NULL;
    memcpy(opt.host, n->host, sizeof opt.host);
    memcpy(opt.key, n->spec.key, sizeof opt.key);
    if (places)
        rnl_node_network_places(n, places);
    opt.places = places;
    int *rings = places ? rnl_node_network_rings(n) : NULL;
    opt.rings = rings;
    opt.rings_memory = rings ? rnl_xdp_queue_memory(n->queue) : -1;
    struct rnl_agent_cards *cards = places ? rnl_node_cards_give(n) : NULL;
    opt.cards = cards;
    int r = n->sockets && !places ? rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the places of %u ranks", size)
                                  : rnl_agent_new(&opt, &n->agent);
    for (uint32_t i = 0; r == 0 && n->sockets && i < n->count; i++)
        n->sockets[i] = -1;
    const int e = r < 0 ? 0 : rnl_agent_serve(&n->watch, n->loop, n->agent);
    if (e < 0)
        r = rnl_fail_errno(RNL_ERR_SYSTEM, -e, "the agent of the job cannot be watched");
    for (uint32_t i = 0; r < 0 && !n->agent && rings && i < n->count; i++)
        close(rings[i]);
    for (uint32_t i = 0; r < 0 && !n->agent && cards && i < n->count; i++)
        for (uint32_t k = 0; k < cards[i].count * RNL_I8255X_GRANT_FDS; k++)
            close(cards[i].fd[k]);
    free(cards);
    free(rings);
    free(places);
    explicit_bzero(&opt, sizeof opt);
    return r;
}

static int receive_go(struct rnl_node_agent *n)
{
    if (n->phase != RNL_NODE_AGENT_PROBING || !n->probed || rnl_node_agent_is(n, RNL_JOB_EXAMINE))
        return -1;
    const int e = rnl_rank_input_new(n);
    if (e < 0)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "cannot make the pipe for the input: %s", strerror(-e));
    else if (make_agent(n) < 0)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "%s", rnl_last_error()->text);
    if (n->phase == RNL_NODE_AGENT_FAILED)
        return 0;
    n->phase = RNL_NODE_AGENT_RUNNING;
    rnl_node_network_attest(n);
    rnl_processes_start(n);
    return 0;
}

static int receive_signal(struct rnl_node_agent *n, struct rnl_unpack *u)
{
    const uint32_t signal = rnl_unpack_32(u);
    if (u->bad || signal < 1 || signal > 64)
        return -1;
    rnl_processes_signal(n, (int)signal);
    return 0;
}

static int receive_word(struct rnl_node_agent *n, struct rnl_unpack *u)
{
    struct rnl_word w;
    rnl_unpack_bytes(u, &w, sizeof w);
    if (u->bad)
        return -1;
    return n->agent ? rnl_agent_word(n->agent, &w, rnl_now_ns()) : 0;
}

static int hear(struct rnl_node_agent *n, const struct rnl_control_frame *f)
{
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    if (n->phase == RNL_NODE_AGENT_EXPECTING && f->kind != RNL_CONTROL_JOB && f->kind != RNL_CONTROL_END)
        return -1;
    switch (f->kind) {
    case RNL_CONTROL_JOB:
        return receive_job(n, f);
    case RNL_CONTROL_HOSTS:
        return rnl_node_network_hosts(n, &u);
    case RNL_CONTROL_GO:
        return receive_go(n);
    case RNL_CONTROL_SIGNAL:
        return receive_signal(n, &u);
    case RNL_CONTROL_WORD:
        return receive_word(n, &u);
    case RNL_CONTROL_FENCE:
        return rnl_mpi_receive(n, &u);
    case RNL_CONTROL_INPUT:
        return rnl_rank_input_receive(n, f);
    case RNL_CONTROL_ROOM:
        return rnl_output_room(n, &u);
    case RNL_CONTROL_PING:
        rnl_control_send(&n->control, RNL_CONTROL_PONG, NULL, 0);
        return 0;
    case RNL_CONTROL_END:
        if (f->bytes > 0)
            snprintf(n->why, sizeof n->why, "%.*s", (int)(f->bytes < sizeof n->why ? f->bytes : sizeof n->why - 1),
                     (const char *)f->body);
        n->phase = RNL_NODE_AGENT_OVER;
        return 0;
    }
    return -1;
}

static void on_control(void *arg)
{
    struct rnl_node_agent *n = arg;
    const bool heard = n->phase > RNL_NODE_AGENT_EXPECTING && n->phase < RNL_NODE_AGENT_FAILED;
    if (heard && !rnl_node_agent_is(n, RNL_JOB_LOCAL))
        rnl_timer_start(&n->silence, on_silence, SILENT_MS, 0);
}

/* ---- its life ---- */

/* What is due after a turn of the loop. */
static void work(struct rnl_node_agent *n)
{
    struct rnl_control_frame f;
    while (n->phase != RNL_NODE_AGENT_OVER && rnl_reader_next(&n->control.reader, &f))
        if (hear(n, &f) < 0)
            n->phase = RNL_NODE_AGENT_OVER;
    if ((n->control.ended && !RNL_BUG(agents_outlive_the_launcher)) || n->control.reader.error != 0)
        n->phase = RNL_NODE_AGENT_OVER;
    if (n->phase == RNL_NODE_AGENT_EXPECTING || n->phase == RNL_NODE_AGENT_OVER)
        return;
    rnl_processes_work(n);
    rnl_mpi_work(n);
    rnl_node_network_work(n);
    if (n->phase == RNL_NODE_AGENT_RUNNING && n->finished == n->count) {
        rnl_control_send(&n->control, RNL_CONTROL_DONE, NULL, 0);
        n->phase = RNL_NODE_AGENT_DONE;
    }
    rnl_agent_arm(&n->watch);
}

static void free_agent(struct rnl_node_agent *n)
{
    rnl_processes_end(n);
    rnl_loop_drain(n->loop); /* it has handles in what is freed below */
    rnl_agent_free(n->agent);
    rnl_node_network_free(n);
    rnl_mpi_free(n);
    rnl_expected_free(n->expected, n->why);
    rnl_reader_free(&n->control.reader);
    free(n->slot);
    free(n->path);
    clearenv(); /* it points into the job */
    rnl_job_spec_free(&n->spec);
    rnl_secret_free(n, sizeof *n);
}

/* `in` and `out` are the control stream. */
static int run_agent(int in, int out, struct rnl_expected *expected)
{
    uv_loop_t loop;
    struct rnl_node_agent *n = rnl_secret_new(sizeof *n); /* it has the keys of the job */
    if (!n || rnl_loop_init(&loop) < 0)
        return RNL_EXIT_SYSTEM;
    *n = (struct rnl_node_agent){.loop = &loop,
                                 .expected = expected,
                                 .why = "the job ended before all of its ranks had come",
                                 .room = {RNL_CONTROL_OUTPUT_ROOM, RNL_CONTROL_OUTPUT_ROOM},
                                 .guard = RNL_GUARD_NONE,
                                 .how = {.in = STDIN_FILENO, .failed = -1},
                                 .probe_fd = -1,
                                 .exec_failed = -1,
                                 .null = -1};
    uv_timer_t *const timers[] = {&n->silence, &n->sweep, &n->look, &n->probe_timer, &n->attest};
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++) {
        (void)uv_timer_init(&loop, timers[i]);
        timers[i]->data = n;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, the ranks would vanish before it is known how they ended */
    if (rnl_control_open(&n->control, &loop, in, out, on_control, n) < 0 || (expected && rnl_expected_serve(n) < 0))
        n->phase = RNL_NODE_AGENT_OVER;
    for (work(n); n->phase != RNL_NODE_AGENT_OVER; work(n))
        (void)uv_run(&loop, n->starting ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    const bool stranger = n->spec.size == 0;
    free_agent(n);
    (void)uv_loop_close(&loop);
    return stranger ? RNL_EXIT_USAGE : 0;
}

int rnl_node_agent_fork(struct rnl_local_agent *out)
{
    int ends[2];
    const pid_t launcher = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    out->pid = fork();
    if (out->pid == 0) {
        close(ends[0]);
        setpgid(0, 0); /* what a terminal sends to the launcher's group is the launcher's to pass on */
        prctl(PR_SET_NAME, "runnel-agent");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != launcher)
            _exit(RNL_EXIT_SYSTEM);
        rnl_control_greet(ends[1]);
        exit(run_agent(ends[1], ends[1], NULL));
    }
    const int e = out->pid < 0 ? -errno : 0;
    close(ends[1]);
    if (e < 0)
        close(ends[0]);
    out->fd = ends[0];
    return e;
}

static bool is_stream(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

int rnl_launch_agent(void)
{
    const char *where = getenv("RUNNEL_RENDEZVOUS");
    int status = RNL_EXIT_USAGE;
    rnl_open_standard();
    rnl_spawn_save_signals();
    signal(SIGPIPE, SIG_IGN);
    struct rnl_expected *expected = where ? rnl_expected_open(where) : NULL;
    if (where && !expected)
        return RNL_EXIT_SYSTEM; /* it was started by a process that joins, which has been told */
    rnl_control_greet(STDOUT_FILENO);
    /* Out of the way of what the ranks, and libraries that print, take for 0, 1 and 2. */
    const int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return RNL_EXIT_SYSTEM;
    if (null > 2)
        close(null);
    if (is_stream(in) && is_stream(out))
        status = run_agent(in, out, expected);
    if (status == RNL_EXIT_USAGE)
        fprintf(stderr,
                "runnel: `runnel agent` is started by `runnel run`, and what is at its input is no such thing\n");
    return status;
}
