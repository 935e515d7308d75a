package screen

// Ink colours words, or leaves them as they are.
type Ink bool

// Good colours a success.
func (i Ink) Good(s string) string { return i.with("32", s) }

// Warn colours a state that is not good yet.
func (i Ink) Warn(s string) string { return i.with("33", s) }

// Bad colours a failure.
func (i Ink) Bad(s string) string { return i.with("31", s) }

// Bold emphasizes a text.
func (i Ink) Bold(s string) string { return i.with("1", s) }

// Dim fades a text that is less important.
func (i Ink) Dim(s string) string { return i.with("2", s) }

func (i Ink) with(code, s string) string {
	if !i || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
