/* The hashes of strings against others' values: BLAKE2b against Python's hashlib, SipHash-1-3 against the
 * authors' key and texts (as Rust and CPython compute them); and lanes against the plain way, bit for bit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "patience.h"
#include "strings/blake2b.h"
#include "strings/lanes.h"
#include "strings/octets.h"
#include "strings/siphash.h"
#include "strings/utf8.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("%s: line %d: %s", scenario, __LINE__, #condition);                               \
    } while (0)
static const char *scenario;

struct known {
    uint64_t length;
    uint64_t hash;
};

/* Byte i of a text of n bytes is (7 i + n) % 256. */
static const struct known blake2b[] = {
    {0, UINT64_C(0xb4b2797457a0a6e4)},   {1, UINT64_C(0xad19753f0a3de800)},
    {7, UINT64_C(0xd50ad7f89c519e91)},   {8, UINT64_C(0x543dd37a9528be5f)},
    {9, UINT64_C(0xacff1685a9efbe96)},   {20, UINT64_C(0xcca8d0b41ebeac83)},
    {32, UINT64_C(0x20397cd8c185dfcf)},  {33, UINT64_C(0xe84e994d0be39f1b)},
    {127, UINT64_C(0xccb7a9be516b2a26)}, {128, UINT64_C(0xd4bd8db997060b59)},
    {129, UINT64_C(0x87632c5fd17a3442)}, {255, UINT64_C(0x86801a888e94d058)},
    {256, UINT64_C(0x1ba4ab5201787de8)}, {257, UINT64_C(0x13462d07347e5aa3)},
    {384, UINT64_C(0x57bf84183aa09710)}, {1000, UINT64_C(0xfc9b24ffe5bf03e1)}};

/* Byte i of the text, and of the key, is i. */
static const struct known siphash[] = {
    {0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},
    {2, UINT64_C(0x82cb9b024dc7d44d)},  {7, UINT64_C(0xd3927d989bb11140)},
    {8, UINT64_C(0x369095118d299a8e)},  {9, UINT64_C(0x25a48eb36c063de4)},
    {15, UINT64_C(0xd320d86d2a519956)}, {16, UINT64_C(0xcc4fdd1a7d908b66)},
    {17, UINT64_C(0x9cf2689063dbd80c)}, {20, UINT64_C(0xc0dc2f46a6cce040)},
    {31, UINT64_C(0x2370dd1f8c21d1bc)}, {63, UINT64_C(0x9d199062b7bbb3a8)}};

enum { COUNT = sizeof blake2b / sizeof *blake2b, MOST = 1000, SLIDES = 400 };

static void codes_are_those_of_hashlib(void)
{
    static uint8_t bytes[COUNT][MOST];
    struct ss_octets texts[COUNT];
    uint64_t codes[COUNT];
    scenario = "codes are those of hashlib";
    for (uint64_t i = 0; i < COUNT; i++) {
        for (uint64_t j = 0; j < blake2b[i].length; j++)
            bytes[i][j] = (uint8_t)(7 * j + blake2b[i].length);
        texts[i] = (struct ss_octets){bytes[i], blake2b[i].length};
    }
    for (uint64_t lanes = 1; lanes <= ss_lanes(); lanes *= 2) {
        if (lanes == 2)
            continue;
        ss_blake2b_in_lanes(lanes, texts, COUNT, codes);
        for (int i = 0; i < COUNT; i++)
            CHECK(codes[i] == blake2b[i].hash);
    }
    ss_blake2b_codes(texts, COUNT, codes);
    for (int i = 0; i < COUNT; i++)
        CHECK(codes[i] == blake2b[i].hash);
}

/* Whatever goes beside it, and however many there are. */
static void lanes_give_the_same_as_one(void)
{
    static uint8_t bytes[SLIDES + MOST];
    struct ss_octets texts[SLIDES];
    uint64_t codes[2][SLIDES], hashes[2][SLIDES], secret[2] = {UINT64_C(12345), UINT64_C(67890)};
    scenario = "lanes give the same as one";
    for (int i = 0; i < SLIDES + MOST; i++)
        bytes[i] = (uint8_t)(i * i >> 3);
    for (uint64_t step = 1; step < 40; step += 3) {
        /* Runs of equally long ones, which SipHash takes together, up to one as long as the step. */
        for (uint64_t i = 0; i < SLIDES; i++)
            texts[i] = (struct ss_octets){bytes + i, i / step * step % 517};
        ss_blake2b_in_lanes(1, texts, SLIDES, codes[0]);
        ss_siphash_in_lanes(1, secret, texts, SLIDES, hashes[0]);
        for (uint64_t lanes = 4; lanes <= ss_lanes(); lanes *= 2)
            for (uint64_t count = SLIDES - 9; count <= SLIDES; count++) {
                memset(codes[1], 0, sizeof codes[1]);
                memset(hashes[1], 0, sizeof hashes[1]);
                ss_blake2b_in_lanes(lanes, texts, count, codes[1]);
                ss_siphash_in_lanes(lanes, secret, texts, count, hashes[1]);
                CHECK(memcmp(codes[0], codes[1], count * sizeof *codes[0]) == 0);
                CHECK(memcmp(hashes[0], hashes[1], count * sizeof *hashes[0]) == 0);
                CHECK(count == SLIDES || (codes[1][count] == 0 && hashes[1][count] == 0));
            }
    }
}

static void siphash_is_that_of_its_authors(void)
{
    uint8_t bytes[64];
    uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    scenario = "SipHash is that of its authors";
    for (int i = 0; i < 64; i++)
        bytes[i] = (uint8_t)i;
    for (uint64_t i = 0; i < sizeof siphash / sizeof *siphash; i++)
        CHECK(ss_siphash(key, bytes, siphash[i].length) == siphash[i].hash);
}

static bool is_text(const char *bytes)
{
    /* Also behind eight bytes and before them, where words are looked at. */
    char padded[64];
    snprintf(padded, sizeof padded, "12345678%s12345678", bytes);
    bool found = ss_is_utf8((const uint8_t *)bytes, strlen(bytes));
    CHECK(ss_is_utf8((const uint8_t *)padded, strlen(padded)) == found);
    return found;
}

static void what_is_utf8(void)
{
    static const char *const texts[] = {
        "", "a", "12345678", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xf1\x80\x80\x80"};
    static const char *const others[] = {
        "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x7f", "\xc2\xc0", "\xe0\x9f\xbf",
        "\xe1\x80", "\xe1\x80\x7f", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
        "\xf1\x80\x80", "\xf1\x80\x80\xc0", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"};
    scenario = "what is UTF-8";
    for (uint64_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK(is_text(texts[i]));
    for (uint64_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(!is_text(others[i]));
}

int main(void)
{
    codes_are_those_of_hashlib();
    lanes_give_the_same_as_one();
    siphash_is_that_of_its_authors();
    what_is_utf8();
    printf("string hashes: as others have them%s\n",
           ss_lanes() > 1 ? ", also in lanes" : "; no lanes here");
    return 0;
}
