package check

import (
	"context"
	"slices"
)

// maxSampled bounds how many cases are tried again with other values of inputs.
const maxSampled = 300

// withOtherValues returns the outcome of a case without the problems that it does not have with other values of inputs: in
// these places anybody may write what they like. Values that do better are used from then on.
func (c *checker) withOtherValues(ctx context.Context, s selection, out outcome) (outcome, error) {
	counts := map[string]bool{} // by key, whether a problem does
	for len(out.samples) > 0 {
		at := slices.IndexFunc(out.problems, func(p problem) bool {
			_, looked := counts[p.key()]
			return !looked && !c.known[p.key()] && !p.isOwn
		})
		if at < 0 {
			break
		}
		p := out.problems[at]
		key := p.key()
		if slices.Contains(out.samples, c.causes[key]) {
			counts[key] = false
			continue
		}
		better, shows, err := c.without(ctx, s, p, out)
		if err != nil {
			return out, err
		}
		if counts[key] = shows; !shows {
			out = better
		}
	}
	out.problems = slices.DeleteFunc(out.problems, func(p problem) bool {
		is, looked := counts[p.key()]
		return looked && !is
	})
	return out, nil
}

// without tries a case with other values of inputs until it does not have a problem. It reports whether it has it with all
// of them. Without time to find out it has not.
func (c *checker) without(ctx context.Context, s selection, p problem, was outcome) (out outcome, shows bool, err error) {
	samples, err := c.neededValues(ctx, s, p, was.samples)
	if err != nil || len(was.samples) > manySamples && c.isSpent() {
		return was, false, err
	}
	for _, one := range samples {
		before := one.at
		out, has, err := c.tryWith(ctx, s, one, one.absent(), p)
		if err != nil || c.isSpent() {
			return was, false, err
		}
		if has {
			continue // it is no matter of this value
		}
		for at := range one.candidates {
			better, has, err := c.tryWith(ctx, s, one, at, p)
			if err != nil || c.isSpent() {
				return was, false, err
			}
			if !has {
				one.at = at
				return better, false, nil
			}
		}
		if one.at = before; !one.provided {
			c.causes[p.key()] = one // whoever writes the input may know a value that nobody can guess
			return out, false, nil
		}
	}
	return was, true, nil
}

// neededValues returns the values without which a case may not have a problem. Of few values it returns all; of many, parts
// are left out together.
func (c *checker) neededValues(ctx context.Context, s selection, p problem, samples []*sample) ([]*sample, error) {
	if len(samples) <= manySamples || c.isSpent() {
		return samples, nil
	}
	return c.neededValuesOf(ctx, s, p, samples)
}

// manySamples is beyond how many values they are left out together first.
const manySamples = 30

func (c *checker) neededValuesOf(ctx context.Context, s selection, p problem, samples []*sample) ([]*sample, error) {
	if len(samples) == 1 {
		return samples, nil // it is looked at by itself
	}
	before := make([]int, len(samples))
	for i, one := range samples {
		before[i], one.at = one.at, one.absent()
	}
	c.sampled++
	out, err := c.try(ctx, s, true)
	for i, one := range samples {
		one.at = before[i]
	}
	if err != nil || c.isSpent() || out.has(p) {
		return nil, err
	}
	half := len(samples) / 2
	first, err := c.neededValuesOf(ctx, s, p, samples[:half])
	if err != nil {
		return nil, err
	}
	second, err := c.neededValuesOf(ctx, s, p, samples[half:])
	return append(slices.Clip(first), second...), err
}

// tryWith tries a case with another candidate of a value, and reports whether it has a problem.
func (c *checker) tryWith(ctx context.Context, s selection, one *sample, at int, p problem) (outcome, bool, error) {
	before := one.at
	defer func() { one.at = before }()
	one.at = at
	c.sampled++
	out, err := c.try(ctx, s, true)
	return out, out.has(p), err
}

// isSpent reports whether no more values are tried.
func (c *checker) isSpent() bool { return c.sampled > maxSampled || c.options.enough() }
