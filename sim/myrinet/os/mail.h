/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mail.h - letters between processes: on one host through its kernel, to another one over Ethernet, as daemons of the
 * papers talk (002, 4.1). Who sends pays a system call, who takes one, too; a letter from elsewhere is on its way for
 * what the machine says (`ethernet`), and interrupts the host that it comes to: it is there when that is served. All
 * arrive, those of one sender in order. A letter is small: what it takes on the wire does not depend on what is in it.
 */
#ifndef MYRI_MAIL_H
#define MYRI_MAIL_H

#include "sim/myrinet/os/process.h"

enum { MYRI_MAIL_WORDS = 12, MYRI_MAIL_MOST = 128 };

struct myri_letter {
    uint32_t kind, node, process; /* node, process: of the sender, who says so */
    uint32_t word[MYRI_MAIL_WORDS];
};

struct myri_mailbox {
    struct myri_host *host;
    struct myri_process *owner; /* is woken by each letter, if there is one */
    uint32_t waiting;           /* letters that have come */
    uint64_t came;              /* ever */
    struct myri_mail_place {
        struct rnl_sim_event event; /* first: its arrival */
        struct myri_mailbox *box;
        int under_way;
        uint64_t order; /* of what has come, from 1; 0: none has */
        struct myri_letter letter;
    } place[MYRI_MAIL_MOST];
};

void myri_mail_init(struct myri_mailbox *, struct myri_host *);
/* Inside a process. A full box is a fault of the machine: nobody takes what comes. */
void myri_mail_send(struct myri_process *, struct myri_mailbox *to, const struct myri_letter *);
/* Inside the owner: 1, or 0 when none has come by the tick. */
int myri_mail_take(struct myri_mailbox *, struct myri_letter *out, uint64_t until);

#endif
