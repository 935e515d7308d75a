package screen

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// A tty is a terminal as far as a screen uses it: it wraps long lines, and knows how to
// go up and to clear what is below.
type tty struct {
	columns int
	lines   [][]rune
	row     int
}

var control = regexp.MustCompile(`^\x1b\[([0-9]*)([A-Za-z])`)

func (v *tty) Write(b []byte) (int, error) {
	for s := string(b); s != ""; {
		if m := control.FindStringSubmatch(s); m != nil {
			v.control(m[1], m[2])
			s = s[len(m[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		v.put(r)
	}
	return len(b), nil
}

func (v *tty) control(number, letter string) {
	switch letter {
	case "A":
		n, _ := strconv.Atoi(number)
		v.row = max(0, v.row-n)
	case "J":
		v.lines = v.lines[:min(v.row, len(v.lines))]
	}
}

func (v *tty) put(r rune) {
	switch r {
	case '\r':
		return
	case '\n':
		v.row++
		return
	}
	for len(v.lines) <= v.row {
		v.lines = append(v.lines, nil)
	}
	if len(v.lines[v.row]) == v.columns {
		v.row++
		v.lines = append(v.lines[:v.row:v.row], nil)
	}
	v.lines[v.row] = append(v.lines[v.row], r)
}

// String is what a person sees, without the durations of steps.
func (v *tty) String() string {
	var out []string
	for _, l := range v.lines {
		out = append(out, string(l))
	}
	return durations.ReplaceAllString(strings.Join(out, "\n"), " ?")
}

var durations = regexp.MustCompile(` +[0-9]+\.[0-9] s`)

// onTTY returns a screen on a terminal; nothing is drawn until the test says so, but
// for what the clock of the screen draws, which is the same.
func onTTY(t *testing.T, columns, rows int) (*Screen, *tty) {
	t.Helper()
	v := &tty{columns: columns}
	s := open(v, func() (int, int, bool) { return v.columns, rows, true }, true, false)
	t.Cleanup(s.Close)
	return s, v
}

// expectScreen compares what is on the terminal, which the screen may be about to change.
func expectScreen(t *testing.T, s *Screen, v *tty, want string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := spinners.ReplaceAllString(v.String(), "*")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the terminal (-want +got):\n%s", diff)
	}
}

var spinners = regexp.MustCompile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")

func TestLinesStayAboveTheFrame(t *testing.T) {
	s, v := onTTY(t, 80, 24)
	st := s.Start("build")
	s.Print("a line of a log")
	s.Show([]string{"config", "└─ web"})
	s.Print("another")
	expectScreen(t, s, v, `a line of a log
another
  * build ?

config
└─ web`)
	st.End(nil, "bin/operetta")
	s.Show([]string{"config"})
	expectScreen(t, s, v, `a line of a log
another
  ✓ build ?  bin/operetta

config`)
}

func TestAPictureThatIsKeptIsNotDrawnOver(t *testing.T) {
	s, v := onTTY(t, 80, 24)
	s.Show([]string{"web  Ready"})
	s.Keep()
	s.Print("the end")
	expectScreen(t, s, v, "\nweb  Ready\nthe end")
}

func TestTheFrameFitsTheTerminal(t *testing.T) {
	s, v := onTTY(t, 12, 5)
	s.Show([]string{"a line that is too long", "2", "3", "4", "5", "6"})
	s.Show([]string{"a line that is too long", "2", "3", "4", "5", "7"})
	expectScreen(t, s, v, "\na line that…\n2\n… 4 more li…")
}

func TestATerminalThatGetsNarrowerIsClearedWhole(t *testing.T) {
	s, v := onTTY(t, 20, 24)
	s.Show([]string{"0123456789"})
	s.mu.Lock()
	v.columns = 4
	v.lines = [][]rune{nil, []rune("0123"), []rune("4567"), []rune("89")} // as it wraps
	v.row = 4
	s.mu.Unlock()
	s.Show([]string{"ab"})
	expectScreen(t, s, v, "\nab")
}

func TestWithoutATerminalNothingIsDrawnOver(t *testing.T) {
	var b strings.Builder
	s := open(&b, func() (int, int, bool) { return 0, 0, false }, false, false)
	st := s.Start("build")
	st.Detail("12 packages")
	s.Show([]string{"web  Waiting"})
	s.Show([]string{"web  Waiting"})
	st.End(errors.New("it does not compile"), "")
	s.Show([]string{"web  Ready"})
	s.Keep()
	s.Close()
	want := `  … build

web  Waiting

  ✗ build ?

web  Ready

`
	if diff := cmp.Diff(want, durations.ReplaceAllString(b.String(), " ?")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestNewOnWhatIsNoTerminalHasNoColours(t *testing.T) {
	r, w, err := osPipe(t)
	if err != nil {
		t.Fatal(err)
	}
	s := New(w)
	s.Print(s.Ink().Good("well"))
	s.Close()
	w.Close()
	if got, _ := io.ReadAll(r); string(got) != "well\n" {
		t.Errorf("it printed %q", got)
	}
}
