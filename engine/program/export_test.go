package program

// Unprojected returns the program, into which all that was observed is filled.
func (p *Program) Unprojected() *Program {
	out, views := *p, *p.views
	views.live, views.inputs = &projection{all: true}, &projection{all: true}
	views.part = views.whole()
	out.views = &views
	return &out
}
