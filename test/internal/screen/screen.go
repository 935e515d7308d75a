// Package screen shows a person how long work goes: lines that stay, and below them,
// on a terminal, a frame that is drawn again in place: the steps that go on, and a
// picture. Anything but a terminal gets a line when a step begins, now and then while
// it goes on, and when it ends, and the picture whenever it changes.
//
//	s := screen.New(os.Stdout)
//	defer s.Close()
//	st := s.Start("build")
//	st.Detail("12 packages")
//	st.End(err, "bin/operetta")
//
// It is for the commands below test that make calls; it imports only the standard
// library, so that they are compiled in seconds.
package screen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// A Screen is what a person sees. Its methods may be called at the same time. New makes
// one; the zero value is of no use.
type Screen struct {
	out  io.Writer
	size func() (columns, rows int, ok bool)
	live bool
	ink  Ink

	mu      sync.Mutex
	running []*Step
	picture []string
	drawn   []string // the frame as it stands on the terminal
	quit    chan struct{}
	done    chan struct{}
}

// How often the frame is drawn again, and how often a long step gives a sign of life
// where there is no frame.
const (
	frameEvery = 100 * time.Millisecond
	signEvery  = 30 * time.Second
)

// New returns a screen on a file. Colours are for terminals whose user has not
// set NO_COLOR.
func New(f *os.File) *Screen {
	size := func() (int, int, bool) { return terminalSize(f) }
	_, _, live := size()
	live = live && os.Getenv("TERM") != "dumb"
	return open(f, size, live, Ink(live && os.Getenv("NO_COLOR") == ""))
}

func open(out io.Writer, size func() (int, int, bool), live bool, ink Ink) *Screen {
	s := &Screen{out: out, size: size, live: live, ink: ink, quit: make(chan struct{}), done: make(chan struct{})}
	go s.tick()
	return s
}

// tick keeps the frame moving until the screen is closed.
func (s *Screen) tick() {
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
				fmt.Fprintln(s.out, st.line(s.ink.Dim("…")))
			}
		}
		s.mu.Unlock()
	}
}

// Live reports whether the screen is a terminal, on which pictures move.
func (s *Screen) Live() bool { return s.live }

// Ink returns the colours of the screen.
func (s *Screen) Ink() Ink { return s.ink }

// Close leaves the text on the screen where it is.
func (s *Screen) Close() {
	close(s.quit)
	<-s.done
}

// Print adds lines that stay.
func (s *Screen) Print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paint(lines)
}

// Show replaces the picture.
func (s *Screen) Show(picture []string) {
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

// Keep makes the picture lines that stay.
func (s *Screen) Keep() {
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
func (s *Screen) paint(lines []string) {
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
func (s *Screen) frame(columns, rows int) []string {
	var all []string
	for _, st := range s.running {
		all = append(all, st.line(s.ink.Warn(st.spinner())))
	}
	if len(s.picture) > 0 {
		all = append(append(all, ""), s.picture...)
	}
	if over := len(all) - (rows - 1); over > 0 {
		all = append(all[:max(rows-2, 0):max(rows-2, 0)], s.ink.Dim(fmt.Sprintf("… %d more lines", over+1)))
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

func (s *Screen) write(lines []string) {
	for _, l := range lines {
		fmt.Fprintln(s.out, l)
	}
}
