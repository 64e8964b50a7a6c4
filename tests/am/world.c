/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.c - see world.h. */
#include "am/world.h"

#include <stdlib.h>

struct world world;
struct noted noted;

void note(void *token)
{
    assert_int_equal(AM_GetSourceEndpoint(token, &noted.source), AM_OK);
    assert_int_equal(AM_GetDestEndpoint(token, &noted.dest), AM_OK);
    assert_int_equal(AM_GetMsgTag(token, &noted.tag), AM_OK);
    assert_int_equal(AM_GetTokenInfo(token, &noted.info), AM_OK);
}

void note_returned(int status, op_t opcode, void *token)
{
    note(token);
    noted.returned++;
    noted.status = status;
    noted.opcode = opcode;
}

void world_open(unsigned ranks, int type)
{
    memset(&noted, 0, sizeof noted);
    world.ranks = ranks;
    test_hub_open(&world.h, ranks, NULL);
    assert_int_equal(AM_Init(), AM_OK);
    for (unsigned i = 0; i < ranks; i++) {
        assert_int_equal(AM_AllocateBundleOn(world.h.ep[i], type, &world.eb[i]), AM_OK);
        assert_int_equal(AM_AllocateEndpoint(world.eb[i], &world.ep[i], &world.name[i]), AM_OK);
        assert_int_equal(AM_SetTag(world.ep[i], TAG), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], 0, note_returned), AM_OK);
        world.seg[i] = calloc(1, SEG);
        assert_int_equal(AM_SetSeg(world.ep[i], world.seg[i], SEG), AM_OK);
    }
    for (unsigned i = 0; i < ranks; i++)
        for (unsigned j = 0; j < ranks; j++)
            assert_int_equal(AM_Map(world.ep[i], (int)j, world.name[j], TAG), AM_OK);
}

void world_close(void)
{
    settle();
    for (unsigned i = 0; i < world.ranks; i++) /* the dead ones' too: their memory is this process's */
        assert_int_equal(AM_FreeBundle(world.eb[i]), AM_OK);
    assert_int_equal(test_hub_close(&world.h), 0);
    assert_int_equal(AM_Terminate(), AM_OK);
    for (unsigned i = 0; i < world.ranks; i++)
        free(world.seg[i]);
}

void settle(void)
{
    for (unsigned round = 0; round < 6; round++) {
        test_wires_settle();
        for (unsigned i = 0; i < world.ranks; i++)
            if (!world.h.dead[i])
                assert_int_equal(AM_Poll(world.eb[i]), AM_OK);
    }
}
