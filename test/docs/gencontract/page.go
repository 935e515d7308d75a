package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/format"
)

// head is what is written by hand: how to read the page, and what the words of a
// component mean beside each other.
//
//go:embed head.md
var head string

// generate returns the page.
func generate(root string) (string, error) {
	_, contract, err := readPackage(filepath.Join(root, "schemas", "operator"))
	healthDoc, health, healthErr := readPackage(filepath.Join(root, "schemas", "health"))
	if err := errors.Join(err, healthErr); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("\n")
	for _, d := range contract {
		writeDefinition(&b, d, contract)
	}
	b.WriteString("## Predicates of health\n\n")
	b.WriteString(paragraphs(healthDoc))
	for _, d := range health {
		if !d.private() {
			writeHealth(&b, d, health)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n", nil
}

// writeDefinition writes one definition of the contract.
func writeDefinition(b *strings.Builder, d definition, all []definition) {
	fmt.Fprintf(b, "## %s\n\n%s", d.name, paragraphs(d.doc))
	if d.expr != "" {
		fmt.Fprintf(b, "%s\n\n", code(d.expr))
	}
	for _, f := range d.fields {
		writeField(b, f, all)
	}
	if len(d.fields) > 0 {
		b.WriteString("\n")
	}
}

func writeField(b *strings.Builder, f field, all []definition) {
	depth := strings.Count(f.path, ".")
	indent := strings.Repeat("  ", depth)
	fmt.Fprintf(b, "%s- **`%s`**", indent, f.path)
	if kind := map[string]string{"!": "required", "?": "optional"}[f.marker]; kind != "" {
		fmt.Fprintf(b, ", %s", kind)
	}
	if f.expr != "" {
		fmt.Fprintf(b, ": %s", code(f.expr))
	}
	b.WriteString("\n\n")
	for p := range strings.SplitSeq(prose(f.doc), "\n\n") {
		fmt.Fprintf(b, "%s  %s\n\n", indent, strings.ReplaceAll(p, "\n", "\n"+indent+"  "))
	}
	var see []string
	for _, u := range f.uses {
		if slices.ContainsFunc(all, func(d definition) bool { return d.name == u }) && u != "#Name" && u != "#Duration" {
			see = append(see, fmt.Sprintf("[%s](#%s)", u, strings.ToLower(strings.TrimPrefix(u, "#"))))
		}
	}
	if len(see) > 0 {
		fmt.Fprintf(b, "%s  See %s.\n\n", indent, strings.Join(see, ", "))
	}
}

// writeHealth writes one definition of the package health, with the checks of what
// it embeds.
func writeHealth(b *strings.Builder, d definition, all []definition) {
	fmt.Fprintf(b, "### health.%s\n\n%s", d.name, paragraphs(d.doc))
	seen := map[string]bool{}
	for _, f := range withEmbedded(d, all) {
		always := f.path == "ready" && d.name != "#Health"
		if strings.HasPrefix(f.path, "object") || f.path == "checks" || always || seen[f.path] {
			continue
		}
		seen[f.path] = true
		// A check is documented as "available: every replica is ready".
		what, ok := strings.CutPrefix(f.doc, strings.TrimPrefix(f.path, "checks.")+": ")
		if !ok {
			what = cmp.Or(f.doc, sharedChecks[f.path])
		}
		fmt.Fprintf(b, "- `%s`: %s\n", f.path, strings.ReplaceAll(prose(what), "\n", "\n  "))
	}
	b.WriteString("\n")
}

// sharedChecks describes the checks of the definitions that are private.
var sharedChecks = map[string]string{
	"checks.exists":   "the object is there.",
	"checks.observed": "the status describes the latest spec, if it has observedGeneration.",
}

// withEmbedded returns the fields of a definition and of those that it embeds, the
// checks of which come first. What says whether it is healthy comes last.
func withEmbedded(d definition, all []definition) []field {
	var out []field
	for _, name := range d.embeds {
		i := slices.IndexFunc(all, func(e definition) bool { return e.name == name })
		if i >= 0 {
			out = append(out, withEmbedded(all[i], all)...)
		}
	}
	out = append(out, d.fields...)
	slices.SortStableFunc(out, func(a, b field) int { return rank(a) - rank(b) })
	return out
}

func rank(f field) int {
	switch {
	case strings.HasPrefix(f.path, "checks"):
		return 1
	case f.path == "ready", f.path == "failed":
		return 2
	}
	return 0
}

// code quotes an expression of CUE.
func code(expr string) string {
	if strings.Contains(expr, "`") {
		return "`` " + expr + " ``"
	}
	return "`" + expr + "`"
}

// prose keeps Markdown from taking <name> for HTML.
func prose(doc string) string { return strings.ReplaceAll(doc, "<", "&lt;") }

// paragraphs returns a doc comment as Markdown: what is indented is CUE.
func paragraphs(doc string) string {
	var out strings.Builder
	for p := range strings.SplitSeq(doc, "\n\n") {
		if source, ok := strings.CutPrefix(p, "\t"); ok {
			out.WriteString("```cue\n" + formatted(strings.ReplaceAll(source, "\n\t", "\n")) + "```\n\n")
			continue
		}
		out.WriteString(prose(p) + "\n\n")
	}
	return out.String()
}

// formatted returns CUE as cue fmt writes it.
func formatted(source string) string {
	out, err := format.Source([]byte(source + "\n"))
	if err != nil {
		return source + "\n" // a test of the documents says where
	}
	return string(out)
}
