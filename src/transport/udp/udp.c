/* SPDX-License-Identifier: BSD-3-Clause
 *
 * udp.c - see udp.h: the table of the contract, and a transport's beginning and end. */
#include "transport/udp/in.h"

#include <stdlib.h>

static int udp_address(struct rnl_transport *t, struct rnl_addr *out)
{
    rnl_udp_addr_of(&udp_of(t)->socket->self, out);
    return 0;
}

static void udp_free(struct udp *u)
{
    rnl_udp_send_end(u);
    rnl_udp_receive_end(u);
    free(u->peer);
    free(u->slot);
    free(u->also);
    free(u);
}

static void udp_close(struct rnl_transport *t)
{
    struct udp *u = udp_of(t);
    u->socket->ops->close(u->socket);
    udp_free(u);
}

void rnl_udp_counts(const struct rnl_transport *t, struct rnl_udp_counts *out)
{
    *out = ((const struct udp *)(const void *)t)->counts;
}

static const struct rnl_transport_ops udp_ops = {
    .size = sizeof udp_ops,
    .reserve = rnl_udp_reserve,
    .commit = rnl_udp_commit,
    .poll = rnl_udp_poll,
    .release = rnl_udp_release,
    .flush = rnl_udp_flush,
    .arm = rnl_udp_arm,
    .fd = rnl_udp_fd,
    .deadline = rnl_udp_deadline,
    .address = udp_address,
    .connect = rnl_udp_connect,
    .disconnect = rnl_udp_disconnect,
    .mtu = rnl_udp_mtu,
    .close = udp_close,
    .source = rnl_udp_source,
    .answer = rnl_udp_answer,
    .mark = rnl_udp_mark,
    .notice = rnl_udp_notice,
    .holds = rnl_udp_holds,
    .also = rnl_udp_also,
    .aim = rnl_udp_aim,
    .toward = rnl_udp_toward,
    .lone = rnl_udp_lone,
    .go = rnl_udp_go,
    .bell = rnl_udp_bell,
};

int rnl_udp_transport_new(struct rnl_env *env, struct rnl_socket *socket, const struct rnl_udp_options *options,
                          struct rnl_transport **out)
{
    static const struct rnl_udp_options none;
    const struct rnl_udp_options *o = options ? options : &none;
    struct udp *u = calloc(1, sizeof *u);
    if (u == NULL || (u->peer = calloc(env->size, sizeof *u->peer)) == NULL) {
        free(u);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a transport to %u rank%s", env->size, RNL_S(env->size));
    }
    u->t.ops = &udp_ops;
    u->t.caps = RNL_CAP_STABLE_VIEW | (socket->has_fd ? RNL_CAP_FD : 0) | (socket->has_ecn ? RNL_CAP_ECN : 0);
    u->t.env = env;
    u->socket = socket;
    int status = rnl_udp_send_begin(u, o->out_bytes);
    if (status == 0)
        status = rnl_udp_receive_begin(u, o->in_buffers);
    if (status < 0) {
        udp_free(u);
        return status;
    }
    *out = &u->t;
    return 0;
}
