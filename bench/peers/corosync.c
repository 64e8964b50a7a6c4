/* SPDX-License-Identifier: BSD-3-Clause
 *
 * corosync.c - corosync's closed process groups (libcpg) under measurement: rank 1 multicasts in agreed order, as their
 * own benchmark does, and waits for each message until it has it back; both sleep meanwhile, so that the daemon has a
 * processor.
 *
 * The program is started once. It makes namespaces of its own, of which nothing is left when their last process ends:
 * the daemon's sockets, its shared memory and its file in /run have fixed names. It starts the daemon there, with a
 * configuration of one node on the loopback, and rank 1. */
#include "common.h"

#include <corosync/cpg.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEGIN_MS = 10000, CONFIGURATION_BYTES = 1024, LONGEST = 64 << 10 };

static cpg_handle_t handle;
static size_t members;
static uint64_t delivered, due;

static void on_message(cpg_handle_t h, const struct cpg_name *group, uint32_t node, uint32_t pid, void *at, size_t n)
{
    (void)h, (void)group, (void)node, (void)pid, (void)at, (void)n;
    delivered++;
}

static void on_change(cpg_handle_t h, const struct cpg_name *group, const struct cpg_address *all, size_t n,
                      const struct cpg_address *left, size_t left_n, const struct cpg_address *joined, size_t joined_n)
{
    (void)h, (void)group, (void)all, (void)left, (void)left_n, (void)joined, (void)joined_n;
    members = n;
}

static int until(struct bench_process *s, const uint64_t *count, uint64_t least)
{
    while (*count < least) {
        cs_error_t e = cpg_dispatch(handle, CS_DISPATCH_ONE);
        if (e != CS_OK && e != CS_ERR_TRY_AGAIN)
            return bench_process_fail(s, "cpg_dispatch returned %d", (int)e);
    }
    return 0;
}

/* "Corosync Cluster Engine, version '3.1.7'" */
static void version(char *out, size_t bytes)
{
    FILE *f = popen(COROSYNC " -v", "r");
    if (!f || !fgets(out, (int)bytes, f))
        snprintf(out, bytes, "corosync");
    out[strcspn(out, "\n")] = 0;
    if (f)
        pclose(f);
}

static int corosync_open(struct bench_process *s)
{
    static cpg_callbacks_t callbacks = {.cpg_deliver_fn = on_message, .cpg_confchg_fn = on_change};
    static const struct cpg_name name = {.length = 12, .value = "runnel-bench"};
    const struct timespec moment = {.tv_nsec = 10000000};
    char text[100];
    cs_error_t e = CS_ERR_TRY_AGAIN;
    for (unsigned ms = 0; e != CS_OK && ms < BEGIN_MS; ms += 10) { /* until the daemon is ready */
        e = cpg_initialize(&handle, &callbacks);
        if (e == CS_OK && (e = cpg_join(handle, (struct cpg_name *)&name)) != CS_OK)
            cpg_finalize(handle);
        if (e != CS_OK)
            nanosleep(&moment, NULL);
    }
    if (e != CS_OK)
        return bench_process_fail(s, "the daemon of corosync let nobody in within %d s: error %d", BEGIN_MS / 1000,
                                  (int)e);
    while (members < 2)
        if ((e = cpg_dispatch(handle, CS_DISPATCH_ONE)) != CS_OK && e != CS_ERR_TRY_AGAIN)
            return bench_process_fail(s, "cpg_dispatch returned %d", (int)e);
    version(text, sizeof text);
    peer_about(s, "%s, one daemon on the loopback, without crypto or real-time priority", text);
    return 0;
}

static void corosync_close(struct bench_process *s)
{
    (void)s;
    cpg_finalize(handle);
}

static int look(struct bench_process *s)
{
    (void)s;
    return 0;
}

static int run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    static unsigned char data[LONGEST];
    struct iovec piece = {data, o->bytes};
    const uint64_t from = due;
    int status = 0;
    due += o->count;
    const uint64_t t0 = bench_now_ns();
    for (uint64_t i = 0; s->rank == 1 && i < o->count && status == 0; i++) {
        cs_error_t e;
        while ((e = cpg_mcast_joined(handle, CPG_TYPE_AGREED, &piece, 1)) == CS_ERR_TRY_AGAIN)
            sched_yield();
        status = e == CS_OK ? until(s, &delivered, from + i + 1)
                            : bench_process_fail(s, "cpg_mcast_joined returned %d", (int)e);
    }
    if (status == 0)
        status = until(s, &delivered, due);
    a->value = (double)(bench_now_ns() - t0) / (double)o->count;
    return status;
}

static const struct bench_api api = {
    .name = "corosync", .open = corosync_open, .close = corosync_close, .poll = look, .run = run};

/* ---- the namespaces, the daemon, the other rank ---- */

static void must(int status, const char *what)
{
    if (status >= 0)
        return;
    fprintf(stderr, "error: corosync runs in namespaces of its own, and %s was refused: %s\n", what, strerror(errno));
    exit(1);
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ? -1 : 0, path);
    close(fd);
}

static void leave_the_others(void)
{
    static const char *const covered[] = {"/run", "/dev/shm", "/var/lib/corosync"};
    const unsigned uid = geteuid(), gid = getegid();
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    char map[40];
    must(unshare(CLONE_NEWNET | CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)), "unshare(2)");
    if (uid) {
        put("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "0 %u 1", uid);
        put("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "0 %u 1", gid);
        put("/proc/self/gid_map", map);
    }
    must(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount(2)");
    for (size_t i = 0; i < sizeof covered / sizeof *covered; i++)
        must(mount("none", covered[i], "tmpfs", 0, NULL), covered[i]);
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(s, "socket(2)");
    must(ioctl(s, SIOCSIFFLAGS, &lo), "the loopback");
    close(s);
}

/* Ends with this process. */
static pid_t start(char *const argv[])
{
    pid_t pid = fork();
    must(pid, "fork(2)");
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execv(argv[0], argv);
    fprintf(stderr, "error: could not start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

int main(int argc, char **argv)
{
    char path[CONFIGURATION_BYTES], self[] = "/proc/self/exe", one[] = "1", daemon[] = COROSYNC;
    pid_t other, server;
    const bool first = argc == 5 && !strcmp(argv[4], "0");
    if (first) {
        leave_the_others();
        snprintf(path, sizeof path, "%s/corosync.conf", getenv("TMPDIR"));
        put(path, "totem {\n version: 2\n cluster_name: runnel-bench\n transport: udpu\n}\n"
                  "nodelist {\n node {\n  ring0_addr: 127.0.0.1\n  nodeid: 1\n  name: here\n }\n}\n"
                  "logging {\n to_stderr: yes\n to_syslog: no\n to_logfile: no\n}\n"
                  "system {\n sched_rr: no\n move_to_root_cgroup: no\n}\n");
        server = start((char *[]){daemon, "-f", "-c", path, NULL});
        other = start((char *[]){self, argv[1], argv[2], argv[3], one, NULL});
    }
    struct peer_args a = peer_start(argc, argv);
    int status = bench_process_run(a.area, a.pair, &api, a.rank);
    if (first) {
        waitpid(other, NULL, 0);
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }
    return status;
}
