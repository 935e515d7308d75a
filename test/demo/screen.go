package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A screen is what a person sees: lines that stay, and below them, on a terminal, a
// frame that is drawn again in place: the steps that go on and a picture. Anything
// but a terminal gets a line when a step begins, goes on for long, and ends, and the
// picture whenever it changes.
type screen struct {
	out  io.Writer
	size func() (columns, rows int, ok bool)
	live bool
	ink  ink

	mu      sync.Mutex
	running []*step
	picture []string
	drawn   []string // the frame as it stands on the terminal
	quit    chan struct{}
	done    chan struct{}
}

// How often the frame is drawn again, and how often a long step gives a sign of life
// where there is no frame.
const (
	frameEvery = 100 * time.Millisecond
	signEvery  = 10 * time.Second
)

// newScreen returns a screen on a file. Colours are for terminals whose user has not
// set NO_COLOR.
func newScreen(f *os.File) *screen {
	size := func() (int, int, bool) { return terminalSize(f) }
	_, _, live := size()
	live = live && os.Getenv("TERM") != "dumb"
	return openScreen(f, size, live, ink(live && os.Getenv("NO_COLOR") == ""))
}

func openScreen(out io.Writer, size func() (int, int, bool), live bool, ink ink) *screen {
	s := &screen{out: out, size: size, live: live, ink: ink, quit: make(chan struct{}), done: make(chan struct{})}
	go s.tick()
	return s
}

// tick keeps the frame moving until the screen is closed.
func (s *screen) tick() {
	defer close(s.done)
	every := frameEvery
	if !s.live {
		every = signEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		if s.live {
			s.paint(nil)
		} else {
			for _, st := range s.running {
				fmt.Fprintln(s.out, st.line(s.ink.dim("…")))
			}
		}
		s.mu.Unlock()
	}
}

// close leaves what is on the screen where it is.
func (s *screen) close() {
	close(s.quit)
	<-s.done
}

// print adds lines that stay.
func (s *screen) print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paint(lines)
}

// show replaces the picture.
func (s *screen) show(picture []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(s.picture, picture) {
		return
	}
	s.picture = picture
	if s.live {
		s.paint(nil)
		return
	}
	fmt.Fprintln(s.out)
	s.write(picture)
	fmt.Fprintln(s.out)
}

// keep makes the picture lines that stay.
func (s *screen) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	picture := s.picture
	s.picture = nil
	if s.live && len(picture) > 0 {
		s.paint(append([]string{""}, picture...))
	}
}

// paint writes lines that stay, and the frame below them. The terminal gets it in one
// write, so that nobody sees it half drawn.
func (s *screen) paint(lines []string) {
	if !s.live {
		s.write(lines)
		return
	}
	columns, rows, _ := s.size()
	frame := s.frame(columns, rows)
	if len(lines) == 0 && slices.Equal(frame, s.drawn) {
		return
	}
	var b bytes.Buffer
	if up := height(s.drawn, columns); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r\x1b[J")
	for _, l := range slices.Concat(lines, frame) {
		b.WriteString(l + "\n")
	}
	s.drawn = frame
	_, _ = s.out.Write(b.Bytes()) // a terminal that went away ends the process by a signal
}

// frame returns the lines of the frame, which never fill the terminal: what scrolled
// out at the top could not be drawn again.
func (s *screen) frame(columns, rows int) []string {
	var all []string
	for _, st := range s.running {
		all = append(all, st.line(s.ink.warn(st.spinner())))
	}
	if len(s.picture) > 0 {
		all = append(append(all, ""), s.picture...)
	}
	if over := len(all) - (rows - 1); over > 0 {
		all = append(all[:max(rows-2, 0):max(rows-2, 0)], s.ink.dim(fmt.Sprintf("… %d more lines", over+1)))
	}
	for i, l := range all {
		all[i] = truncate(l, columns)
	}
	return all
}

// height returns how many rows a drawn frame takes on a terminal that may have become
// narrower since.
func height(frame []string, columns int) int {
	n := 0
	for _, l := range frame {
		n += max(1, (width(l)+columns-1)/columns)
	}
	return n
}

func (s *screen) write(lines []string) {
	for _, l := range lines {
		fmt.Fprintln(s.out, l)
	}
}

// A step is something that takes time, and says so while it does.
type step struct {
	screen *screen
	name   string
	begin  time.Time
	about  string
}

// nameWidth aligns what stands behind the names of steps.
const nameWidth = 34

// start begins a step.
func (s *screen) start(name string) *step {
	st := &step{screen: s, name: name, begin: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, st)
	if s.live {
		s.paint(nil)
	} else {
		fmt.Fprintf(s.out, "  … %s\n", name)
	}
	return st
}

// detail says how far the step is.
func (st *step) detail(text string) {
	st.screen.mu.Lock()
	defer st.screen.mu.Unlock()
	st.about = text
}

// end ends the step: well, if err is nil.
func (st *step) end(err error, about string) {
	s := st.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(other *step) bool { return other == st })
	st.about = about
	mark := s.ink.good("✓")
	if err != nil {
		mark = s.ink.bad("✗")
	}
	s.paint([]string{st.line(mark)})
}

func (st *step) line(mark string) string {
	took := seconds(time.Since(st.begin))
	name := st.name + strings.Repeat(" ", max(0, nameWidth-width(st.name)))
	return strings.TrimRight(fmt.Sprintf("  %s %s %8s  %s", mark, name, took, st.screen.ink.dim(st.about)), " ")
}

// spinner returns what turns while a step goes on.
func (st *step) spinner() string {
	const signs = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	all := []rune(signs)
	return string(all[int(time.Since(st.begin)/frameEvery)%len(all)])
}

// seconds writes a duration for a person.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
}
