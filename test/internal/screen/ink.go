package screen

// Ink colours words, or leaves them as they are.
type Ink bool

// Good is for what went well.
func (i Ink) Good(s string) string { return i.with("32", s) }

// Warn is for what is not well yet.
func (i Ink) Warn(s string) string { return i.with("33", s) }

// Bad is for what went wrong.
func (i Ink) Bad(s string) string { return i.with("31", s) }

// Bold is for what is not to be overlooked.
func (i Ink) Bold(s string) string { return i.with("1", s) }

// Dim is for what may be overlooked.
func (i Ink) Dim(s string) string { return i.with("2", s) }

func (i Ink) with(code, s string) string {
	if !i || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
