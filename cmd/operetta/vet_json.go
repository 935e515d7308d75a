package main

import (
	"slices"

	"operetta.dev/engine/check"
	"operetta.dev/engine/fault"
)

// A vettedPackage is what was found in one package, as JSON.
type vettedPackage struct {
	Folder   string        `json:"folder"`
	Faults   []vettedFault `json:"faults"`
	Warnings []vettedFault `json:"warnings"`
	Check    *vettedCheck  `json:"check,omitempty"`
}

// A vettedFault is a fault as JSON.
type vettedFault struct {
	// Code is Invalid, Incomplete, Unset or UnknownField.
	Code string `json:"code"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// UsedAt is the place that uses a template at that line, as file:line.
	UsedAt  string `json:"usedAt,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// A vettedCheck is a report of the check as JSON, with faults as they are elsewhere.
type vettedCheck struct {
	check.Report

	Rejected        *vettedFault    `json:"rejected,omitempty"`
	Counterexamples []vettedExample `json:"counterexamples,omitempty"`
	Unready         []vettedExample `json:"unready,omitempty"`
	Reached         []vettedExample `json:"reached,omitempty"`
}

// A vettedExample is a counterexample as JSON.
type vettedExample struct {
	Fault    vettedFault      `json:"fault"`
	Resource map[string]any   `json:"resource"`
	Live     []map[string]any `json:"live,omitempty"`
}

// vetted returns what was found, as JSON.
func vetted(dirs []string, findings []finding) map[string][]vettedPackage {
	out := []vettedPackage{}
	for i, found := range findings {
		out = append(out, vettedPackage{dirs[i], faultRecords(found.Faults), faultRecords(slices.Concat(found.Warnings, found.Unknown)), checkRecord(found.Check)})
	}
	return map[string][]vettedPackage{"packages": out}
}

// faultRecords returns faults as JSON; none are an empty list.
func faultRecords(faults fault.Faults) []vettedFault {
	out := []vettedFault{}
	for _, f := range faults {
		out = append(out, faultRecord(f))
	}
	return out
}

func faultRecord(f fault.Fault) vettedFault {
	return vettedFault{f.Code.String(), f.Position.File, f.Position.Line, f.Position.Use, f.Path, f.Message, f.Hint}
}

// checkRecord returns a report as JSON, or nil.
func checkRecord(r *check.Report) *vettedCheck {
	if r == nil {
		return nil
	}
	out := &vettedCheck{Report: *r}
	if r.Rejected != nil {
		rejected := faultRecord(*r.Rejected)
		out.Rejected = &rejected
	}
	out.Counterexamples, out.Unready, out.Reached = exampleRecords(r.Counterexamples), exampleRecords(r.Unready), exampleRecords(r.Reached)
	return out
}

// exampleRecords returns counterexamples as JSON.
func exampleRecords(all []check.Counterexample) (out []vettedExample) {
	for _, c := range all {
		out = append(out, vettedExample{faultRecord(c.Fault), c.Resource, c.Live})
	}
	return out
}
