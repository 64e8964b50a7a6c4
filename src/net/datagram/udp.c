/* SPDX-License-Identifier: BSD-3-Clause
 *
 * udp.c - the table of operations of the datagram transport, and its beginning and end. */
#include "net/datagram/udp_internal.h"

#include <stdlib.h>

static void udp_free(struct udp *u)
{
    rnl_udp_send_end(u);
    rnl_udp_receive_end(u);
    free(u->peer);
    free(u->slot);
    free(u->further);
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
    .reserve_one = rnl_udp_reserve_one,
    .send_one = rnl_udp_send_one,
    .flush = rnl_udp_flush,
    .deadline = rnl_udp_deadline,
    .poll = rnl_udp_poll,
    .release = rnl_udp_release,
    .source = rnl_udp_source,
    .reply = rnl_udp_reply,
    .arm = rnl_udp_arm,
    .fd = rnl_udp_fd,
    .bell = rnl_udp_bell,
    .add_peer = rnl_udp_add_peer,
    .remove_peer = rnl_udp_remove_peer,
    .set_active_path = rnl_udp_set_active_path,
    .send_on_path = rnl_udp_send_on_path,
    .commit_on_path = rnl_udp_commit_on_path,
    .is_path_down = rnl_udp_is_path_down,
    .mtu = rnl_udp_mtu,
    .close = udp_close,
};

int rnl_udp_transport_new(struct rnl_env *env, struct rnl_socket *socket, const struct rnl_udp_options *options,
                          struct rnl_transport **out)
{
    static const struct rnl_udp_options none;
    const struct rnl_udp_options *o = options ? options : &none;
    struct udp *u = calloc(1, sizeof *u);
    if (!u || !(u->peer = calloc(env->size, sizeof *u->peer))) {
        free(u);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a transport to %u rank%s", env->size, RNL_S(env->size));
    }
    u->t.ops = &udp_ops;
    u->t.env = env;
    u->t.receive_bytes = socket->receive_bytes;
    u->t.frames = socket->frames;
    u->t.has_fd = socket->has_fd;
    u->t.has_ecn = socket->has_ecn;
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
