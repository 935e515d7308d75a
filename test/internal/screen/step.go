package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Step is an action that takes time, and shows that it is running.
type Step struct {
	screen *Screen
	name   string
	begin  time.Time
	about  string
}

// nameWidth is the width to which the names of steps are padded.
const nameWidth = 42

// Start begins a step.
func (s *Screen) Start(name string) *Step {
	st := &Step{screen: s, name: name, begin: time.Now()}
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

// Detail shows the progress of the step.
func (st *Step) Detail(text string) {
	st.screen.mu.Lock()
	defer st.screen.mu.Unlock()
	st.about = text
}

// End ends the step: well, if err is nil.
func (st *Step) End(err error, about string) {
	s := st.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(other *Step) bool { return other == st })
	st.about = about
	mark := s.ink.Good("✓")
	if err != nil {
		mark = s.ink.Bad("✗")
	}
	s.paint([]string{st.line(mark)})
}

func (st *Step) line(mark string) string {
	took := Seconds(time.Since(st.begin))
	name := st.name + strings.Repeat(" ", max(0, nameWidth-width(st.name)))
	return strings.TrimRight(fmt.Sprintf("  %s %s %8s  %s", mark, name, took, st.screen.ink.Dim(st.about)), " ")
}

// spinner returns a character that changes while a step runs.
func (st *Step) spinner() string {
	const signs = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	all := []rune(signs)
	return string(all[int(time.Since(st.begin)/frameEvery)%len(all)])
}

// Seconds writes a duration for a person.
func Seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
}
