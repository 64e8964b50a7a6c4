/* am.pml - replies that cannot be delivered, on their way back (src/api/am/returned.c), with finite rings.
 *
 * Two processes. Each sends MSGS requests on lane 0, of which RING fit, to the other. A handler of a request replies on
 * lane 1, for which room was set aside: it is dispatched only when lane 1 has room, of ANSWERS. Whoever takes a reply in
 * may find that it cannot be delivered: it only notes that, and the note goes back on lane 0 in a step outside handlers
 * that does not wait. While more than NOTED are noted, no request is sent; the process goes on taking in both lanes.
 * Every step a process may take is free at any time, so any order of polling is covered. In the end, when nothing can
 * move, all that was sent has been handled and all notes have gone back.
 *
 * Planted bugs, which must be found:
 *   BUG_SEND_IN_ANSWER   the handler of an answer sends the note itself, and waits for room on lane 0
 *   BUG_GATE_BLIND       who waits for its notes to go takes in lane 1 only */
#ifndef MSGS
#define MSGS 3
#endif
#ifndef RING
#define RING 1
#endif
#ifndef ANSWERS
#define ANSWERS 1
#endif
#ifndef NOTED
#define NOTED 0
#endif

/* Of process p: what the other sent it and it has not taken in. */
byte requests[2]; /* lane 0 ... */
byte returned[2]; /* ... replies that come back among them */
byte answers[2];  /* lane 1 */
byte sent[2], handled[2], noted[2], came_back[2], rejected[2];

#define LANE0(p) (requests[p] + returned[p])

active [2] proctype process()
{
    byte me = _pid, other = 1 - _pid;
    end:do
    /* a request; rule b and c: it waits for room while the other steps go on */
    :: atomic { sent[me] < MSGS && noted[me] <= NOTED && LANE0(other) < RING ->
        requests[other]++; sent[me]++ }
    /* a handler of a request, if its answer fits */
#ifdef BUG_GATE_BLIND
    :: atomic { requests[me] > 0 && answers[other] < ANSWERS && noted[me] <= NOTED ->
#else
    :: atomic { requests[me] > 0 && answers[other] < ANSWERS ->
#endif
        requests[me]--; answers[other]++; handled[me]++ }
    /* a reply that came back: handler 0 */
#ifdef BUG_GATE_BLIND
    :: atomic { returned[me] > 0 && noted[me] <= NOTED -> returned[me]--; came_back[me]++ }
#else
    :: atomic { returned[me] > 0 -> returned[me]--; came_back[me]++ }
#endif
    /* an answer: delivered, or not */
    :: atomic { answers[me] > 0 -> answers[me]-- }
    :: atomic { answers[me] > 0 -> rejected[me]++;
#ifdef BUG_SEND_IN_ANSWER
        noted[me]++ };
        /* still inside the handler: lane 1 keeps the answer, nothing else moves here */
        atomic { LANE0(other) < RING -> noted[me]--; returned[other]++; answers[me]-- }
#else
        answers[me]--; noted[me]++ }
#endif
    /* outside handlers: a note goes, if there is room */
#ifndef BUG_SEND_IN_ANSWER
    :: atomic { noted[me] > 0 && LANE0(other) < RING -> noted[me]--; returned[other]++ }
#endif
    od
}

/* Nothing can move any more: then all is done. */
active proctype last()
{
    timeout ->
        assert(sent[0] == MSGS && sent[1] == MSGS && handled[0] == MSGS && handled[1] == MSGS);
        assert(requests[0] + requests[1] + returned[0] + returned[1] + answers[0] + answers[1] == 0);
        assert(noted[0] + noted[1] == 0 && came_back[0] == rejected[1] && came_back[1] == rejected[0])
}
