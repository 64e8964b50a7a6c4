/* SPDX-License-Identifier: BSD-3-Clause
 *
 * greeting.c - the messages by which a client and a server find each other, and which place a process is in. */
#include "greeting.h"

#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <rpc/rpc.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PASSRIGHTS = 83 }; /* SO_PASSRIGHTS, which headers before Linux 6.16 lack */

/* Streams of any kind, and no function of libtirpc. */
static bool xdr_word(XDR *x, u_int *word)
{
    long v = (long)(int32_t)*word;
    if (x->x_op == XDR_FREE)
        return true;
    if (x->x_op == XDR_ENCODE ? !XDR_PUTLONG(x, &v) : !XDR_GETLONG(x, &v))
        return false;
    *word = (u_int)v;
    return true;
}

static bool xdr_whole(XDR *x, char *at, u_int n) /* a multiple of four */
{
    return x->x_op == XDR_FREE || (x->x_op == XDR_ENCODE ? XDR_PUTBYTES(x, at, n) : XDR_GETBYTES(x, at, n));
}

static bool xdr_long_word(XDR *x, uint64_t *value)
{
    u_int high = (u_int)(*value >> 32), low = (u_int)*value;
    if (!xdr_word(x, &high) || !xdr_word(x, &low))
        return false;
    *value = (uint64_t)high << 32 | low;
    return true;
}

bool_t rnl_rpc_xdr_place(XDR *x, struct rnl_rpc_place *p)
{
    return xdr_whole(x, p->boot, sizeof p->boot) && xdr_long_word(x, &p->netns_device) &&
           xdr_long_word(x, &p->netns_inode);
}

bool_t rnl_rpc_xdr_answer(XDR *x, struct rnl_rpc_answer *a)
{
    return xdr_word(x, &a->refused) && xdr_word(x, &a->name_bytes) && xdr_whole(x, a->name, sizeof a->name) &&
           xdr_whole(x, a->token, sizeof a->token) && xdr_whole(x, a->proof, sizeof a->proof) &&
           (a->refused != RNL_RPC_COME_REMOTE || xdr_whole(x, a->service, sizeof a->service));
}

bool rnl_rpc_place_here(struct rnl_rpc_place *p)
{
    struct stat st;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    bool ok =
        fd >= 0 && read(fd, p->boot, sizeof p->boot) == (ssize_t)sizeof p->boot && stat("/proc/self/ns/net", &st) == 0;
    if (fd >= 0)
        close(fd);
    if (ok) {
        p->netns_device = st.st_dev;
        p->netns_inode = st.st_ino;
    }
    return ok;
}

bool rnl_rpc_place_equal(const struct rnl_rpc_place *a, const struct rnl_rpc_place *b)
{
    return memcmp(a->boot, b->boot, sizeof a->boot) == 0 && a->netns_device == b->netns_device &&
           a->netns_inode == b->netns_inode;
}

bool rnl_rpc_hello_send(int sock, const char secret[RNL_RPC_TOKEN_BYTES], int fd)
{
    struct rnl_rpc_hello hello = {RNL_RPC_MAGIC, RNL_RPC_VERSION, 0, {0}};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec bytes = {&hello, sizeof hello};
    struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};
    rnl_rpc_host_begin();
    hello.barrier = rnl_rpc_host.facts.have_membarrier;
    memcpy(hello.secret, secret, sizeof hello.secret);
    if (fd >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof control;
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    }
    return sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof hello;
}

int rnl_rpc_hello_receive(int sock, struct rnl_rpc_hello *hello, int *fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec bytes = {hello, sizeof *hello};
    struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (fd) {
        *fd = -1;
        m.msg_control = &control;
        m.msg_controllen = CMSG_LEN(sizeof(int)); /* one */
    }
    ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    struct cmsghdr *head = n >= 0 && fd ? CMSG_FIRSTHDR(&m) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    if (n == (ssize_t)sizeof *hello && hello->magic == RNL_RPC_MAGIC && hello->version == RNL_RPC_VERSION)
        return 1;
    if (fd && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return -1;
}

void rnl_rpc_take_no_descriptors(int sock)
{
    const int no = 0;
    (void)setsockopt(sock, SOL_SOCKET, PASSRIGHTS, &no, sizeof no);
}

bool rnl_rpc_has_room(int fd)
{
    struct rlimit limit;
    rlim_t most = FD_SETSIZE;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < most)
        most = limit.rlim_cur;
    return fd >= 0 && (rlim_t)fd < most - most / 4;
}

bool rnl_rpc_secret_equal(const char a[RNL_RPC_TOKEN_BYTES], const char b[RNL_RPC_TOKEN_BYTES])
{
    unsigned char differ = 0;
    for (unsigned i = 0; i < RNL_RPC_TOKEN_BYTES; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}
