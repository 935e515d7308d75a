package status

import "time"

// RevisionUnusable returns a status that says that the resource is pinned to a version of its package that cannot serve it.
// Everything that an earlier version has observed stays as it was.
func RevisionUnusable(before map[string]any, generation int64, now time.Time, why string) map[string]any {
	return unreconciled(before, generation, now, ReasonRevisionUnusable, "nothing is reconciled: "+why)
}
