package check

import (
	"context"
	"fmt"
	"strings"
)

// maxUnready bounds the values that are reported to keep resources from becoming ready.
const maxUnready = 10

// unready finds the values that the schema lists, of an enumeration or true and false, with which a predicate is
// false for good although nothing else is asked for, while it is true for other resources. It reports neither numbers
// nor combinations of two values, because users may ask for things that contradict each other.
func (c *checker) unready(ctx context.Context, f found) error {
	simplest := make(selection, len(c.branches))
	if is, err := c.showsIn(ctx, f, simplest); is != nil || err != nil {
		return err // it is not the value that makes it
	}
	for i, b := range c.branches {
		for at, choice := range b.choices {
			if at == 0 || !choice.listed || !strings.HasPrefix(b.path, "spec.") {
				continue
			}
			if c.options.enough() || len(c.report.Unready) == maxUnready {
				return nil
			}
			alone := make(selection, len(c.branches))
			alone[i] = at
			p, err := c.showsIn(ctx, f, alone)
			if err != nil {
				return err
			}
			if p != nil {
				p.fault.Message = strings.Replace(p.fault.Message, neverTrue, fmt.Sprintf("is never true while %s is %s", b.path, choice.label), 1)
				p.live = nil // the rollout makes its objects
				c.report.Unready = append(c.report.Unready, c.example(alone, *p))
			}
		}
	}
	return nil
}

// showsIn returns the problem of a finding in a case, or nil if the case does not have it.
func (c *checker) showsIn(ctx context.Context, f found, s selection) (*problem, error) {
	out, err := c.try(ctx, s, true)
	at := out.index(f.key())
	if err != nil || at < 0 {
		return nil, err
	}
	return &out.problems[at], nil
}
