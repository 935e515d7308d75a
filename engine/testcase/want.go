package testcase

import (
	"fmt"
	"regexp"
	"slices"

	"cuelang.org/go/cue"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// A want is what a test, or a step of it, says about a decision.
type want struct {
	value cue.Value
	// prefix is what the paths of differences begin with: "" for a test, and as "steps[1]." for a step.
	prefix string
}

// want returns what the test wants of the decision about what is given.
func (t Test) want() want { return want{value: t.value.LookupPath(cue.ParsePath("want"))} }

// part returns a part of what is wanted.
func (w want) part(name string) cue.Value { return w.value.LookupPath(cue.MakePath(cue.Str(name))) }

// error returns the expression that a fault has to match, and nil if there may be none.
func (w want) error() (*regexp.Regexp, error) {
	v := w.part("error")
	if !v.Exists() {
		return nil, nil
	}
	text, err := v.String()
	if err != nil {
		return nil, fmt.Errorf("%swant.error: %w", w.prefix, err)
	}
	out, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%swant.error: %w", w.prefix, err)
	}
	return out, nil
}

// decision adds where a decision is not as it is wanted. It errors if what is wanted is malformed.
func (c *comparison) decision(w want, out render.Output) error {
	pattern, err := w.error()
	if err != nil {
		return err
	}
	faults := slices.Concat(out.Invalid, out.Faults)
	switch {
	case pattern == nil:
		for _, f := range faults {
			c.addf(f.Position, "", "%s", f.Text())
		}
	case !slices.ContainsFunc(faults, func(f fault.Fault) bool { return pattern.MatchString(f.Error()) }):
		c.addf(program.PositionOf(w.part("error")), "error", "want a fault that matches %q, got %s", pattern, listed(faults))
	}
	c.parts(w, map[string]map[string]any{
		"objects": objectsOf(out), "edges": edgesOf(out), "verdicts": verdictsOf(out), "components": componentsOf(out), "status": out.Status,
	})
	c.compareAbsent(w.part("absent"), out)
	return nil
}

// phase compares the phase. It is "" as long as there is no status.
func (c *comparison) phase(w want, got status.Phase) {
	switch v := w.part("phase"); {
	case !v.Exists():
	case got == "":
		c.addf(program.PositionOf(v), "phase", "want %s, and there is none", c.wanted(cue.Path{}, v))
	default:
		c.compareScalar(cue.ParsePath("phase"), v, string(got))
	}
}

// parts compares what has the form of what is wanted.
func (c *comparison) parts(w want, got map[string]map[string]any) {
	for _, name := range []string{"objects", "live", "edges", "verdicts", "components", "status", "writes"} {
		value, decided := got[name]
		if v := w.part(name); v.Exists() && decided {
			c.compare(cue.MakePath(cue.Str(name)), v, value)
		}
	}
}
