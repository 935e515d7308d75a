package screen

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func osPipe(t *testing.T) (r, w *os.File, err error) {
	t.Helper()
	r, w, err = os.Pipe()
	if err == nil {
		t.Cleanup(func() { r.Close() })
	}
	return r, w, err
}

func TestTruncate(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		columns    int
	}{
		"it fits":                      {text: "web ✓", columns: 5, want: "web ✓"},
		"it does not":                  {text: "web ✓ Ready", columns: 6, want: "web ✓…"},
		"colours take no room":         {text: "\x1b[32mweb\x1b[0m", columns: 3, want: "\x1b[32mweb\x1b[0m"},
		"a cut colour ends":            {text: "\x1b[32mweb server\x1b[0m", columns: 4, want: "\x1b[32mweb\x1b[0m…"},
		"what is no colour is text":    {text: "a\x1b[", columns: 3, want: "a\x1b["},
		"an ellipsis is all there is":  {text: "web", columns: 1, want: "…"},
		"what is no UTF-8 counts, too": {text: "a\xffbc", columns: 3, want: "a\xff…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := truncate(c.text, c.columns); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		40 * time.Millisecond:   "0.0 s",
		5340 * time.Millisecond: "5.3 s",
		61 * time.Second:        "1:01 min",
		time.Hour:               "60:00 min",
	} {
		if got := Seconds(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

func TestInkIsOptional(t *testing.T) {
	if got := Ink(false).Bad("wrong"); got != "wrong" {
		t.Errorf("without colours: %q", got)
	}
	if got := Ink(true).Bad("wrong"); got != "\x1b[31mwrong\x1b[0m" {
		t.Errorf("with colours: %q", got)
	}
	if got := Ink(true).Dim(""); got != "" {
		t.Errorf("nothing, coloured: %q", got)
	}
}

func TestLinesAreWhole(t *testing.T) {
	var got []string
	l := &Lines{Say: func(line string) { got = append(got, line) }}
	for _, part := range []string{"on", "e\ntwo\r\n", "", "\nlast"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%q: %d, %v", part, n, err)
		}
	}
	l.Flush()
	l.Flush()
	if diff := cmp.Diff([]string{"one", "two", "", "last"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
