/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tree.h - FM/MC on the card (paper 003, section 4.2): FM 1.1's loop (../fm1/carry.h), and multicasts. Whoever is here
 * because of them is RARELY in the straight way, but the tests that find them are not: with NO_MULTICAST they are left
 * out, for what they cost (5.1.1).
 *
 * A multicast fragment of the host goes to the first two nodes behind this one; who gets one passes it on to the nodes
 * 2k+1 and 2k+2 behind its sender, being the k-th itself. It is put into the host at once, and its buffer is free again
 * when it has left for the last child: a new one from the pool stands open meanwhile. Credits bound what there is of
 * them, so the pool is never empty: a node is done with a fragment when its host is and its children have it, and of
 * both counts, the lesser goes into the token. The host's alone would not do: what waits here for several children, of
 * trees of several senders, can be more than what any one of them lacks.
 *
 * The manager's card deals numbers and credits. Who asks for more credits than it has waits there, in turn. A token
 * collects how many fragments every host is done with; it goes round while less than half of the credits is known to be
 * free. */

enum { BRANCHES = 2 };
struct tree_loop {
    uint32_t sent;
    volatile uint32_t *next_end; /* of the next fragment of the queue */
    uint32_t frame;
    uint32_t place_end, ring_end; /* host addresses: of the next place, of the last one */
    uint32_t open, other;         /* buffer for what comes in, and the one that is being put into the host */
    uint32_t notify;              /* the host is interrupted when the transfer is over */
#ifndef NO_MULTICAST
    uint32_t node, nodes;
    uint32_t branch;             /* of the host's fragment that goes out: how many children it has left for */
    uint32_t credits;            /* of this node */
    uint32_t forwards, controls; /* that wait */
    uint32_t forward_at, control_at, control_end;
    uint32_t leaving; /* a buffer that leaves for its last child, or 0 */
    uint32_t spare;   /* buffers in the pool */
    uint32_t passed;  /* multicast fragments that all children here have, own ones included, ever */
    /* of the manager: */
    uint32_t number, stock, recycled, token_out, asking, asking_at;
#endif
};

#ifndef NO_MULTICAST
/* Buffers that wait for their children: address, node of the tree that it goes to next, sender. */
static uint32_t forward[FMMC_POOL][3], spares[FMMC_POOL], askers[FMMC_NODES][2];

FIRMWARE uint32_t behind(struct tree_loop *l, uint32_t node, uint32_t by)
{
    uint32_t k = node + by;
    return k >= l->nodes ? k - l->nodes : k;
}

static void put_control(struct tree_loop *l, uint32_t to, uint32_t value, uint32_t what)
{
    volatile struct fmmc_control *c = &card.control[l->control_end];
    if (l->controls == FMMC_CONTROLS) {
        card.errors++;
        return;
    }
    c->to = to;
    c->value = value;
    c->what = what;
    l->control_end = (l->control_end + 1) & (FMMC_CONTROLS - 1);
    l->controls++;
}

/* What this host has asked for is here: three words, the last of which it looks at. */
static void answer(struct tree_loop *l, uint32_t number)
{
    card.answer[0] = number;
    card.answer[1] = l->credits;
    card.answer[2] = FMMC_VALID;
    nic_dma(card.answer_at, SRAM_AT(card.answer), TO_HOST, 12);
}

/* Multicast fragments that neither the host nor a child waits for any more. */
static uint32_t done_here(struct tree_loop *l)
{
    uint32_t freed = card.freed;
    return (int32_t)(l->passed - freed) < 0 ? l->passed : freed;
}

static void start_token(struct tree_loop *l)
{
    if (!l->token_out && l->stock < FMMC_CREDITS / 2 && l->nodes > 1) {
        l->token_out = 1;
        put_control(l, behind(l, l->node, 1), done_here(l), FMMC_TOKEN << 24);
    }
}

/* Those who ask are served in turn, as long as there are credits; the host's own answer needs the DMA engine. */
static void serve(struct tree_loop *l)
{
    while (l->asking) {
        uint32_t to = askers[l->asking_at][0], want = askers[l->asking_at][1] & 0xffff;
        uint32_t numbered = askers[l->asking_at][1] >> 16 & 1;
        if (want > l->stock || (to == l->node && !(nic_read(ISR) & HDONE)))
            break;
        l->stock -= want;
        if (to == l->node) {
            l->credits += want;
            answer(l, l->number);
        } else {
            put_control(l, to, l->number, FMMC_GRANT << 24 | want << 8);
        }
        l->number += numbered;
        l->asking--;
        l->asking_at = (l->asking_at + 1) & (FMMC_NODES - 1);
    }
    start_token(l);
}

static void ask(struct tree_loop *l, uint32_t node, uint32_t want)
{
    uint32_t at = (l->asking_at + l->asking) & (FMMC_NODES - 1);
    if (l->asking == FMMC_NODES || (want & 0xffff) > FMMC_CREDITS / 2) {
        card.errors++;
        return;
    }
    askers[at][0] = node;
    askers[at][1] = want;
    l->asking++;
    serve(l);
}

static void token_came(struct tree_loop *l, uint32_t least)
{
    uint32_t done = done_here(l);
    if ((int32_t)(done - least) < 0)
        least = done;
    if (l->node != FMMC_MANAGER) {
        put_control(l, behind(l, l->node, 1), least, FMMC_TOKEN << 24);
        return;
    }
    if (least - l->recycled <= FMMC_CREDITS) {
        l->stock += least - l->recycled;
        l->recycled = least;
    }
    l->token_out = 0;
    serve(l);
}

static void control_came(struct tree_loop *l, volatile uint32_t *at)
{
    uint32_t value = at[0], what = at[1], kind = what >> 24;
    if (kind == FMMC_REQUEST && l->node == FMMC_MANAGER) {
        ask(l, what & (FMMC_NODES - 1), value);
    } else if (kind == FMMC_GRANT) {
        l->credits += what >> 8 & 0xffff;
        answer(l, value);
    } else if (kind == FMMC_TOKEN) {
        token_came(l, value);
    } else {
        card.errors++;
    }
}

/* Queues a packet that is on its way into the host for its children, from where it lies; a spare buffer replaces it. */
static void pass_on(struct tree_loop *l, uint32_t here, uint32_t mark)
{
    uint32_t root = mark >> 24 & (FMMC_NODES - 1), k = l->node >= root ? l->node - root : l->node + l->nodes - root;
    uint32_t child = k + k + 1, at = l->forward_at + l->forwards;
    if (child >= l->nodes || !l->spare) {
        card.errors += child < l->nodes; /* a sender without credit */
        l->passed++;
        return;
    }
    at = at >= FMMC_POOL ? at - FMMC_POOL : at;
    forward[at][0] = here;
    forward[at][1] = child;
    forward[at][2] = root;
    l->forwards++;
    l->other = spares[--l->spare];
}

/* Starts the send engine with what waits for it, first what others wait for. Returns whether there was anything. */
static int send_waiting(struct tree_loop *l)
{
    if (l->leaving) {
        spares[l->spare++] = l->leaving;
        l->passed++;
        l->leaving = 0;
    }
    if (l->controls) {
        volatile struct fmmc_control *c = &card.control[l->control_at];
        nic_send(card.route[c->to & (FMMC_NODES - 1)], SRAM_AT(&c->value), 8);
        l->control_at = (l->control_at + 1) & (FMMC_CONTROLS - 1);
        l->controls--; /* the place is not written again before all others have been */
        return 1;
    }
    if (l->forwards) {
        uint32_t *f = forward[l->forward_at], child = f[1];
        uint32_t to = behind(l, f[2], child);
        nic_send(card.route[to & (FMMC_NODES - 1)], f[0], l->frame);
        if (child & 1 && child + 1 < l->nodes) {
            f[1] = child + 1;
            return 1;
        }
        l->leaving = f[0];
        l->forward_at = l->forward_at + 1 == FMMC_POOL ? 0 : l->forward_at + 1;
        l->forwards--;
        return 1;
    }
    return 0;
}
#endif

FIRMWARE void next_of_queue(struct tree_loop *l, volatile uint32_t *end)
{
    card.sent = l->sent++; /* those before it have left; this one's place may not be written yet */
    if (end == (volatile uint32_t *)card.queue + FMMC_QUEUE * FMMC_WORDS)
        end = card.queue[0];
    l->next_end = end + FMMC_WORDS;
}

#ifndef NO_MULTICAST
/* A fragment of the host's that is for all, or that asks. */
static void send_special(struct tree_loop *l, volatile uint32_t *end, uint32_t mark)
{
    if (mark & FMMC_ASK) {
        uint32_t want = end[-2] & 0xffff, lacks = want > l->credits ? want - l->credits : 0;
        lacks |= end[-2] & 1 << 16;
        if (l->node == FMMC_MANAGER) {
            ask(l, l->node, lacks);
        } else { /* at once, out of its own place: the wire is free, and no other control waits for it */
            end[-2] = lacks;
            end[-1] = FMMC_REQUEST << 24 | l->node;
            nic_send(card.route[FMMC_MANAGER], SRAM_AT(end) - 8, 8);
        }
        next_of_queue(l, end);
        return;
    }
    if (l->nodes > 1 && l->branch == 0) {
        if (!l->credits)
            return; /* until there is one; the library asks before it sends */
        l->credits--;
    }
    if (l->branch + 1 < l->nodes)
        nic_send(card.route[behind(l, l->node, l->branch + 1)], SRAM_AT(end) - l->frame, l->frame);
    if (++l->branch >= BRANCHES || l->branch + 1 >= l->nodes) {
        l->branch = 0;
        l->passed++;
        next_of_queue(l, end);
    }
}
#endif

FIRMWARE void init(struct tree_loop *l)
{
    l->sent = l->notify = 0;
    l->frame = card.frame;
    l->next_end = card.queue[0] + FMMC_WORDS;
    l->place_end = card.ring_at + FMMC_FRAGMENT;
    l->ring_end = card.ring_at + FMMC_RING * FMMC_FRAGMENT;
    l->open = SRAM_AT(card.pool[0]);
    l->other = SRAM_AT(card.pool[1]);
#ifndef NO_MULTICAST
    l->node = nic_read(NODE);
    l->nodes = card.nodes;
    l->branch = l->forwards = l->controls = l->forward_at = l->control_at = l->control_end = l->leaving = l->passed = 0;
    l->number = l->recycled = l->token_out = l->asking = l->asking_at = 0;
    l->credits = card.credits;
    l->stock = card.stock;
    for (l->spare = 0; l->spare + 2 < FMMC_POOL; l->spare++)
        spares[l->spare] = SRAM_AT(card.pool[l->spare + 2]);
#endif
#ifdef ONE_DIRECTION
    nic_write(DIR, TO_HOST);
#endif
    nic_arm(l->open, l->frame);
}
