package status_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"operetta.dev/engine/status"
)

func TestALongTextKeepsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason, text, want string
		limit              int
	}{
		"short":    {"nothing is left out", "web: 1/3", "web: 1/3", 8},
		"long":     {"the object is at the beginning, the place at the end", "web: " + strings.Repeat("x", 100) + " (shop.cue:12)", "web: xxxxxxxxxxxxxxxxxxxxx ... (shop.cue:12)", 44},
		"not only": {"a character is never cut", strings.Repeat("ä", 50), "ääääääääää ... äääää", 36},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := status.Shorten(row.text, row.limit)
			if got != row.want || len(got) > row.limit || !utf8.ValidString(got) {
				t.Errorf("%s: got %q, want %q in %d bytes", row.reason, got, row.want, row.limit)
			}
		})
	}
}

func TestALongListSaysHowManyMoreThereAre(t *testing.T) {
	t.Parallel()
	var texts []string
	for i := range 1000 {
		texts = append(texts, fmt.Sprint(i))
	}
	for n, want := range map[int]string{
		0:    "",
		2:    "0; 1",
		10:   "0; 1; 2; 3; 4; 5; 6; 7; 8; 9",
		11:   "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; and 1 more",
		1000: "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; and 990 more",
	} {
		if got := status.List(texts[:n]); got != want {
			t.Errorf("of %d: got %q, want %q", n, got, want)
		}
	}
}
