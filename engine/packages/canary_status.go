package packages

import (
	"fmt"
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/status"
)

// restoredCanary returns the canary that the status of a Package tells of, or nil. It decides which resources go on with
// the content, and that a content which has gone back stays away. It cannot promote anything: the time for which the
// resources have to be ready starts over. For how long they were not ready counts.
func restoredCanary(p Package, now time.Time) *canary {
	s, ok, _ := unstructured.NestedMap(p.object.Object, "status", "canary")
	if !ok {
		return nil
	}
	text := func(field string) string { t, _ := s[field].(string); return t }
	moment := func(field string) time.Time {
		t, err := time.Parse(time.RFC3339, text(field))
		if err != nil || t.After(now) {
			return now
		}
		return t
	}
	c := &canary{digest: text("digest"), from: text("from"), phase: CanaryPhase(text("phase")), began: moment("since"), share: text("share"), why: text("why"), restored: true}
	c.unready, c.judged.waited = unreadyOf(s["notReady"])
	if text("judgedAt") != "" {
		c.judged.at, c.judged.total = moment("judgedAt"), durationOf(s["judgedFor"])
	}
	if n, err := strconv.ParseUint(text("upTo"), 16, 64); err == nil {
		c.cutoff = &n
	}
	if total, ok := s["resources"].(int64); ok {
		c.total = int(total)
	}
	if ready, ok := s["ready"].(int64); ok {
		c.ready = int(ready)
	}
	switch c.phase {
	case CanaryProgressing, CanaryReady:
		return c
	case CanaryPromoted, CanaryRolledBack:
		c.ended = moment("until")
		return c
	}
	return nil
}

// unreadyOf returns the resources in a list of a status, and for how long each had waited.
func unreadyOf(list any) ([]unready, map[string]time.Duration) {
	items, _ := list.([]any)
	var out []unready
	waited := map[string]time.Duration{}
	for _, item := range items[:min(len(items), maxUnready)] {
		fields, _ := item.(map[string]any)
		resource, _ := fields["resource"].(string)
		reason, _ := fields["reason"].(string)
		out = append(out, unready{resource, reason})
		waited[resource] = durationOf(fields["notReadyFor"])
	}
	return out, waited
}

// durationOf returns a duration in a status, or 0.
func durationOf(value any) time.Duration {
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return min(max(d, 0), maxDuration)
}

// maxDuration bounds what a status says: sums of it are none of a time before.
const maxDuration = math.MaxInt64 / 4

// canaryStatus returns what the status says of the canary of a Package, or nil. One that has ended is said as long as its
// content is that of the source. One that has gone back is said as well while nobody knows what the source has: a process that
// begins then would try the same content again.
func (s *state) canaryStatus() map[string]any {
	c := s.canary
	if c == nil || !c.inProgress() && !c.is(s.content.digest()) && (c.phase != CanaryRolledBack || s.content.digest() != "") {
		return nil
	}
	out := map[string]any{
		"digest": c.digest, "from": c.from, "phase": string(c.phase), "since": stamp(c.began),
		"resources": int64(c.total), "ready": int64(c.ready),
	}
	if !c.readySince.IsZero() && c.phase == CanaryReady {
		out["readySince"] = stamp(c.readySince)
	}
	if !c.ended.IsZero() {
		out["until"] = stamp(c.ended)
	}
	if c.share != "" {
		out["share"] = c.share
	}
	if c.cutoff != nil {
		out["upTo"] = fmt.Sprintf("%016x", *c.cutoff)
	}
	if c.why != "" {
		out["why"] = status.Shorten(c.why, maxFaultText)
	}
	if c.phase == CanaryPromoted {
		return out
	}
	if c.inProgress() && !c.judged.at.IsZero() {
		out["judgedFor"], out["judgedAt"] = spanText(c.judged.total), stamp(c.judged.at)
	}
	var list []any
	for _, u := range c.unready {
		item := map[string]any{"resource": status.Shorten(u.resource, maxFaultText), "reason": status.Shorten(u.reason, maxFaultText)}
		if waited := c.judged.waited[u.resource]; c.inProgress() && waited >= time.Second {
			item["notReadyFor"] = spanText(waited)
		}
		list = append(list, item)
	}
	if len(list) > 0 {
		out["notReady"] = list
	}
	return out
}

// spanText returns a duration in whole seconds.
func spanText(d time.Duration) string { return d.Truncate(time.Second).String() }

func stamp(t time.Time) string { return metav1.NewTime(t).UTC().Format(time.RFC3339) }

// problem returns why a content is not served to all resources: its canary is under way, or has gone back.
func (c canary) problem() *problem {
	switch c.phase {
	case CanaryProgressing:
		return &problem{stage: holding, reason: ReasonCanaryProgressing, passes: true, again: canaryAgain,
			message: c.digest + " is served to a canary, whose resources are not all ready; status.canary counts them"}
	case CanaryReady:
		return &problem{stage: holding, reason: ReasonCanaryReady, passes: true, again: canaryAgain,
			message: c.digest + " is served to a canary, whose resources have been ready since status.canary.readySince"}
	case CanaryRolledBack:
		message := fmt.Sprintf("the canary of %s has gone back: %s", c.digest, c.why)
		if len(c.unready) > 0 {
			message += fmt.Sprintf("; the first is %s (%s)", c.unready[0].resource, c.unready[0].reason)
		}
		return &problem{stage: holding, reason: ReasonCanaryRolledBack, person: true, message: message + "; it is not tried again until the content changes"}
	case CanaryPromoted:
	}
	return nil
}
