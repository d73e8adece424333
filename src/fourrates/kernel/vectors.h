/* Hints for a compiler to work on several numbers at once. */
#if defined(_MSC_VER)
#define FOURRATES_APART __restrict
#else
#define FOURRATES_APART restrict
#endif
