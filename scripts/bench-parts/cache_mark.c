// SPDX-License-Identifier: GPL-2.0
/* A mark for cache_lines.c: a nop with an address that nothing else uses. */
int main(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x0a, 0xb0, 0x10, 0x0a");
	return 0;
}
