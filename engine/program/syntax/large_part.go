package syntax

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A LargePart is a part of a package that has very many values or fields, so that an evaluation takes long.
type LargePart struct {
	Position fault.Position
	// Name says what it is, as in #Spec.mode.
	Name  string
	Count int
	Kind  LargePartKind
}

// A LargePartKind is what a [LargePart] has many of.
type LargePartKind int

const (
	// Values are those of an enumeration. CUE compares each with each.
	Values LargePartKind = iota
	// Fields are those of a struct.
	Fields
)

// String returns what there is much of.
func (b LargePart) String() string {
	switch b.Kind {
	case Values:
		return fmt.Sprintf("%s: %s has %s values, and CUE compares each with each", b.Position, b.Name, Thousands(b.Count))
	case Fields:
		return fmt.Sprintf("%s: %s has %s fields", b.Position, b.Name, Thousands(b.Count))
	}
	return ""
}

// Thousands returns a number as people read it, as in 5,000.
func Thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// minBulk is how many fields or values there are at least of what is worth naming.
const minBulk = 300

// LargestPart returns the part of files that costs the most by the number of what is in it, if any has very many.
func LargestPart(files []*ast.File) (LargePart, bool) {
	all := enumerations(files, minBulk)
	fields := map[string]*LargePart{}
	known := map[string]bool{}
	eachNamed(files, func(name string, n ast.Node) bool {
		field, is := n.(*ast.Field)
		if !is || known[name] {
			return true
		}
		known[name] = true
		around := name[:max(0, strings.LastIndex(name, "."))]
		if fields[around] == nil {
			fields[around] = &LargePart{Position: positionOf(field), Name: cmp.Or(around, "the package"), Kind: Fields}
		}
		fields[around].Count++
		return true
	})
	for _, b := range fields {
		if b.Count >= minBulk {
			all = append(all, *b)
		}
	}
	if len(all) == 0 {
		return LargePart{}, false
	}
	return slices.MaxFunc(all, func(a, b LargePart) int {
		return cmp.Or(cmp.Compare(a.cost(), b.cost()), cmp.Compare(b.Name, a.Name))
	}), true
}

// cost tells bulks apart by the time that they take, roughly: a field as much as some dozens of comparisons.
func (b LargePart) cost() int {
	if b.Kind == Values {
		return b.Count * b.Count / 100
	}
	return b.Count
}

// eachNamed calls a function with the nodes of files, and the path of the fields around each or of itself. It
// says whether to look into a node.
func eachNamed(files []*ast.File, each func(name string, n ast.Node) bool) {
	for _, f := range files {
		var path []string
		ast.Walk(f, func(n ast.Node) bool {
			if field, is := n.(*ast.Field); is {
				path = append(path, labelText(field.Label))
			}
			more := each(strings.Join(path, "."), n)
			if _, is := n.(*ast.Field); is && !more {
				path = path[:len(path)-1]
			}
			return more
		}, func(n ast.Node) {
			if _, is := n.(*ast.Field); is {
				path = path[:len(path)-1]
			}
		})
	}
}

func positionOf(n ast.Node) fault.Position { return fault.PositionAt(n.Pos()) }

// Enumerations returns the enumerations of the package with at least so many values, in the order of its files.
func (x *Examples) Enumerations(atLeast int) []LargePart { return enumerations(x.files, atLeast) }
