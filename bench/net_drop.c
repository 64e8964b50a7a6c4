/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_drop.c - see net.h: six instructions for the kernel's packet filter (XDP), by bare system calls. */
#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static int load(unsigned per_mille)
{
    const uint32_t below = (uint32_t)((UINT64_C(1) << 32) * per_mille / 1000);
    const struct bpf_insn program[] = {
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_prandom_u32},
        {.code = BPF_JMP32 | BPF_JLT | BPF_K, .dst_reg = BPF_REG_0, .off = 2, .imm = (int32_t)below},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
        {.code = BPF_JMP | BPF_EXIT},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_DROP},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_XDP;
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = sizeof program / sizeof *program;
    attr.license = (uintptr_t) "BSD";
    attr.prog_flags = BPF_F_XDP_HAS_FRAGS; /* frames longer than a page */
    return bpf(BPF_PROG_LOAD, &attr);
}

/* In the namespace of the interface: there it has its number. */
static int attach(const struct bench_net *net, unsigned rank, int program)
{
    union bpf_attr attr;
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), link = -1;
    if (home < 0)
        return -1;
    if (bench_net_enter(net, rank) == 0) {
        memset(&attr, 0, sizeof attr);
        attr.link_create.prog_fd = (uint32_t)program;
        attr.link_create.target_ifindex = if_nametoindex("rnl0");
        attr.link_create.attach_type = BPF_XDP;
        link = bpf(BPF_LINK_CREATE, &attr);
        int e = errno;
        if (setns(home, CLONE_NEWNET) && link >= 0) {
            close(link);
            link = -1;
        }
        errno = e;
    }
    close(home);
    return link;
}

int bench_net_drop(struct bench_drop *d, const struct bench_net *net, unsigned per_mille, char *text, size_t size)
{
    int program = load(per_mille), e = program < 0 ? errno : 0;
    for (unsigned rank = 0; rank < 2 && e == 0; rank++) {
        union bpf_attr attr;
        memset(&attr, 0, sizeof attr);
        attr.link_update.link_fd = (uint32_t)d->link[rank];
        attr.link_update.new_prog_fd = (uint32_t)program;
        if (d->link[rank] >= 0)
            e = bpf(BPF_LINK_UPDATE, &attr) ? errno : 0;
        else
            e = (d->link[rank] = attach(net, rank, program)) < 0 ? errno : 0;
    }
    if (program >= 0)
        close(program); /* the links hold it */
    if (e)
        snprintf(text, size, "the kernel takes no filter that drops datagrams (bpf): %s; leave the test loss out",
                 strerror(e));
    return -e;
}

void bench_net_drop_end(struct bench_drop *d)
{
    for (unsigned rank = 0; rank < 2; rank++) {
        if (d->link[rank] >= 0)
            close(d->link[rank]);
        d->link[rank] = -1;
    }
}
