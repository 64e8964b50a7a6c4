/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue.h - how FM's cards send: frames of the queue go out as they are, in turn. Who includes it has `card`, and says
 * how many frames the queue has (QUEUE) and how far they lie apart (WORDS), and, of a frame's last word but one, where
 * it goes (ROUTE_OF) and how many bytes it has (BYTES_OF). */
#define QUEUE_END ((volatile uint32_t *)card.queue + QUEUE * WORDS)

struct queue {
    uint32_t sent;
    volatile uint32_t *next_end; /* of the next frame of the queue */
    uint32_t frame;              /* bytes, where all are of one length */
};

FIRMWARE void send_frame(struct queue *q)
{
    volatile uint32_t *end = q->next_end;
    uint32_t word = end[-2], bytes = BYTES_OF(q, word);
    nic_write(SRT, ROUTE_OF(word));
    nic_write(SMP, SRAM_AT(end) - bytes);
    nic_write(SMLT, SRAM_AT(end));
    card.sent = q->sent++; /* those before it have left; this one's place may not be written yet */
    if (end == QUEUE_END)
        end = card.queue[0];
    q->next_end = end + WORDS;
}

FIRMWARE void init_queue(struct queue *q)
{
    q->sent = 0;
    q->next_end = card.queue[0] + WORDS;
    q->frame = FRAME;
}
