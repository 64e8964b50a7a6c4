/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.c - see net.h. ip(8) does it, in a process that outlives this one by as long as removing takes. */
#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench_wires {
    pid_t supervisor;
    int life; /* closed: remove */
};

/* $1 and $2 are the namespaces, $3 the MTU, $4 and $5 the addresses. Removing a namespace removes its interface, and
 * with that the other end. */
static const char make_script[] =
    "set -e\n"
    "ip netns add \"$1\"; ip netns add \"$2\"\n"
    "ip -n \"$1\" link add " BENCH_NET_INTERFACE " type veth peer name " BENCH_NET_INTERFACE " netns \"$2\"\n"
    "for n in \"$1 $4\" \"$2 $5\"; do\n"
    "    ip -n \"${n% *}\" link set lo up\n"
    "    ip -n \"${n% *}\" address add \"${n#* }/30\" dev " BENCH_NET_INTERFACE "\n"
    "    ip -n \"${n% *}\" link set " BENCH_NET_INTERFACE " mtu \"$3\" up\n"
    "done\n";
static const char remove_script[] = "for n in \"$1\" \"$2\"; do ip netns delete \"$n\"; done 2>/dev/null; true\n";

/* Its words go to `said`, or nowhere. */
static int run_script(const char *script, const struct bench_net *net, int said)
{
    char mtu[16];
    snprintf(mtu, sizeof mtu, "%u", net->mtu);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(said < 0 ? null : said, STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", script, "sh", net->space[0], net->space[1], mtu, net->address[0], net->address[1],
              (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && status == 0 ? 0 : -1;
}

/* In the supervisor: nothing but the end of `runnel bench` ends it. */
static _Noreturn void keep(const struct bench_net *net, int life, int said)
{
    char byte;
    setpgid(0, 0);
    for (const int *s = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGPIPE, 0}; *s; s++)
        signal(*s, SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) /* who reads what runnel bench says is not to wait for us */
        dup2(null, fd);
    if (run_script(make_script, net, said) == 0) {
        close(said);
        while (read(life, &byte, 1) < 0 && errno == EINTR)
            ;
    }
    run_script(remove_script, net, -1);
    _exit(0);
}

int bench_net_plug(struct bench_net *net, struct bench_wires **out, char *text, size_t size)
{
    static int made;
    int life[2], said[2];
    char words[256];
    struct bench_wires *w = calloc(1, sizeof *w);
    if (!w || pipe2(life, O_CLOEXEC)) {
        free(w);
        snprintf(text, size, "no memory or no descriptors for the network namespaces");
        return -ENOMEM;
    }
    if (pipe2(said, O_CLOEXEC)) {
        close(life[0]), close(life[1]);
        free(w);
        snprintf(text, size, "no descriptors for the network namespaces");
        return -EMFILE;
    }
    for (unsigned i = 0; i < 2; i++) {
        snprintf(net->space[i], sizeof net->space[i], "runnel-bench-%d-%c", (int)getpid(), 'a' + made + (int)i);
        snprintf(net->address[i], sizeof net->address[i], "10.213.94.%u", 1 + i);
    }
    made += 2;
    w->supervisor = fork();
    if (w->supervisor == 0) {
        close(life[1]);
        close(said[0]);
        keep(net, life[0], said[1]);
    }
    close(life[0]);
    close(said[1]);
    w->life = life[1];
    ssize_t n = 0, got = 0;
    while (w->supervisor > 0 && (n = read(said[0], words + got, sizeof words - 1 - (size_t)got)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        got += n > 0 ? n : 0;
        if ((size_t)got == sizeof words - 1)
            break;
    }
    words[got] = 0;
    words[strcspn(words, "\n")] = 0;
    close(said[0]);
    if (w->supervisor > 0 && got == 0 && bench_net_enter(net, 2) == 0) {
        *out = w;
        return 0;
    }
    snprintf(text, size,
             "--netns makes two network namespaces with ip(8), which takes root (or unshare -rn): %s; without --netns "
             "the datagrams go over loopback",
             got ? words : "ip is not there, or it failed without a word");
    bench_net_unplug(w);
    return -EPERM;
}

void bench_net_unplug(struct bench_wires *w)
{
    if (!w)
        return;
    close(w->life);
    while (w->supervisor > 0 && waitpid(w->supervisor, NULL, 0) < 0 && errno == EINTR)
        ;
    free(w);
}

int bench_net_enter(const struct bench_net *net, unsigned rank)
{
    char path[64];
    const char *name = net->space[rank % 2];
    if (!*name)
        return 0;
    snprintf(path, sizeof path, "/run/netns/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* A rank from 2 up only asks whether it is there. */
    int e = rank < 2 && setns(fd, CLONE_NEWNET) ? -errno : 0;
    close(fd);
    return e;
}
