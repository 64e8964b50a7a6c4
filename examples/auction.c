/* SPDX-License-Identifier: BSD-3-Clause
 *
 * auction.c - a program in the style of Panda 2.0: processes bid in a group, whose messages all of them get in one
 * order, so each knows the winner without asking. Process 0 is asked, too, by a remote procedure call.
 *
 *     runnel run -n 4 examples/auction */
#include <panda/pan_group.h>
#include <panda/pan_rpc.h>

#include <stdio.h>

static pan_mutex_p lock;
static pan_cond_p change;
static int highest, bidder = -1, bids;

/* A message is a stack: what was pushed last is popped first. */
static void on_bid(pan_msg_p msg)
{
    int from = *(int *)pan_msg_pop(msg, sizeof(int), alignof(int));
    int bid = *(int *)pan_msg_pop(msg, sizeof(int), alignof(int));
    pan_msg_clear(msg);
    pan_mutex_lock(lock);
    if (bid > highest) { /* of equal bids the first counts */
        highest = bid;
        bidder = from;
    }
    bids++;
    pan_cond_broadcast(change);
    pan_mutex_unlock(lock);
}

static void on_question(pan_upcall_p upcall, pan_msg_p request)
{
    pan_msg_empty(request);
    pan_mutex_lock(lock);
    *(int *)pan_msg_push(request, sizeof(int), alignof(int)) = bidder;
    pan_mutex_unlock(lock);
    pan_rpc_reply(upcall, request); /* the request's memory is the reply's */
}

int main(int argc, char **argv)
{
    char name[] = "auction";
    pan_init(&argc, argv);
    pan_rpc_init();
    pan_group_init();
    lock = pan_mutex_create();
    change = pan_cond_create(lock);
    pan_rpc_register(on_question);
    pan_start();
    const int me = pan_my_pid(), all = pan_nr_platforms();
    pan_group_p g = pan_group_join(name, on_bid);
    pan_group_await_size(g, all);
    pan_msg_p msg = pan_msg_create();
    *(int *)pan_msg_push(msg, sizeof(int), alignof(int)) = 100 + me * 7 % 5;
    *(int *)pan_msg_push(msg, sizeof(int), alignof(int)) = me;
    pan_group_send(g, msg);
    pan_mutex_lock(lock);
    while (bids < all)
        pan_cond_wait(change);
    pan_mutex_unlock(lock);
    int asked = bidder;
    if (me != 0) {
        pan_msg_p question = pan_msg_create(), reply;
        pan_rpc_trans(0, question, &reply);
        asked = *(int *)pan_msg_pop(reply, sizeof(int), alignof(int));
        pan_msg_clear(reply);
        pan_msg_clear(question);
    }
    printf("process %d: the winner bid %d%s\n", me, highest, asked == bidder ? "" : ", and process 0 says otherwise");
    pan_group_leave(g);
    pan_group_clear(g);
    pan_end();
    pan_cond_clear(change);
    pan_mutex_clear(lock);
    return asked != bidder;
}
