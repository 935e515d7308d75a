package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rows returns the table of a run: a head, and a row for each metric that was measured. The last
// columns compare operetta with the hand-written operator, and name the goal.
func (r *results) rows() [][]string {
	names := r.controllers()
	compared := slices.Contains(names, nameOperetta) && slices.Contains(names, nameHandwritten)
	head := append([]string{fmt.Sprintf("%d resources", r.n)}, names...)
	if compared {
		head = append(head, "ratio")
	}
	out := [][]string{append(head, "goal")}
	for _, m := range metrics {
		row, measured := []string{m.title}, false
		for _, name := range names {
			v, ok := r.value(name, m.id)
			measured = measured || ok
			row = append(row, cell(v, ok, m.unit))
		}
		if compared {
			row = append(row, r.ratio(m.id))
		}
		if measured {
			out = append(out, append(row, m.goal))
		}
	}
	return out
}

// ratio returns how many times what the hand-written operator takes operetta takes.
func (r *results) ratio(id string) string {
	own, ok := r.value(nameOperetta, id)
	other, okOther := r.value(nameHandwritten, id)
	if !ok || !okOther || other == 0 {
		return ""
	}
	return number(own/other) + " ×"
}

func cell(v float64, ok bool, unit string) string {
	if !ok {
		return ""
	}
	return strings.TrimSpace(number(v) + " " + unit)
}

// number writes three digits that say something.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// text writes a table for a terminal.
func text(rows [][]string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var out []string
	for _, row := range rows {
		var b strings.Builder
		for i, c := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i == 0 || i == len(row)-1 {
				b.WriteString(c + gap + "  ")
			} else {
				b.WriteString(gap + c + "  ")
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

// markdown writes a table for a document.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---" + strings.Repeat("|--:", len(row)-2) + "|---|\n")
		}
	}
	return b.String()
}
