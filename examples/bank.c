/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bank.c - Panda: rank 0 keeps an account, the others pay into it by remote procedure calls. At the end each tells
 * all what it has paid, in the same order everywhere.
 *
 *     runnel run -n 3 examples/bank */
#include <runnel/panda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int balance, paid, told, port;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rnl_last_error()->text);
    exit(1);
}

/* Pays the amount that follows in, and replies with the balance. */
static void on_pay(pan_upcall_p upcall, pan_msg_p msg, void *proto)
{
    int amount = 0;
    if (pan_msg_consume(msg, &amount, sizeof amount) == 0)
        balance += amount;
    pan_msg_clear(msg);
    /* The reply's data may be sent later: it stays where it is. */
    const pan_iovec_t iov = {&balance, sizeof balance};
    if (pan_rpc_reply(upcall, &iov, 1, proto, pan_rpc_proto_offset(), NULL, NULL) < 0)
        fail("a reply");
}

static void on_paid(pan_msg_p msg, void *proto)
{
    int amount = 0;
    (void)proto;
    if (pan_msg_consume(msg, &amount, sizeof amount) < 0)
        fail("a message to the group");
    pan_msg_clear(msg);
    paid += amount;
    told++;
}

static int pay(int amount)
{
    void *proto = pan_proto_create(0), *back;
    pan_msg_p msg = NULL;
    const pan_iovec_t iov = {&amount, sizeof amount};
    int now = 0;
    if (!proto || pan_rpc_trans(0, &iov, 1, proto, pan_rpc_proto_offset(), &msg, &back) < 0 ||
        pan_msg_consume(msg, &now, sizeof now) < 0)
        fail("a payment");
    pan_msg_clear(msg);
    free(proto);
    return now;
}

static void tell_all(int amount)
{
    void *proto = pan_proto_create(0);
    const pan_iovec_t iov = {&amount, sizeof amount};
    if (!proto || pan_group_send(port, &iov, 1, proto, pan_group_proto_offset()) < 0)
        fail("a message to the group");
    free(proto);
}

int main(int argc, char **argv)
{
    int mine = 0;
    if (pan_init(&argc, argv) < 0)
        fail("pan_init");
    pan_rpc_register(on_pay);
    port = pan_group_register_port(on_paid);
    if (port < 0 || pan_start() < 0)
        fail("pan_start");
    if (pan_my_pid() > 0) {
        int now = 0;
        for (int i = 0; i < 3; i++, mine += 100)
            now = pay(100);
        printf("the account holds %d at rank %d\n", now, pan_my_pid());
    }
    tell_all(mine);
    while (told < pan_nr_processes())
        if (pan_wait(-1) < 0)
            fail("pan_wait");
    printf("rank %d knows that %d were paid\n", pan_my_pid(), paid);
    return pan_end() < 0;
}
