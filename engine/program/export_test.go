package program

// Unprojected returns the program, into which all that was observed is filled.
func (p *Program) Unprojected() *Program {
	out := *p
	out.liveUsed, out.inputsUsed = &projection{all: true}, &projection{all: true}
	out.viewed = out.parts()
	return &out
}
