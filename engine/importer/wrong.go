package importer

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"operetta.dev/engine/fault"
)

// wrongPackage returns the reasons why a package would be wrong, one for each fault. Its files are never written, so the
// line stands beside each position in them.
func wrongPackage(at string, files map[string]string, err error) *RefusedError {
	faults, are := errors.AsType[fault.Faults](err)
	if !are {
		faults = fault.Faults{{Message: err.Error()}}
	}
	var reasons []string
	for _, f := range faults {
		reasons = append(reasons, at+"the package would be wrong: "+withLines(f.Error(), files))
	}
	return &RefusedError{reasons[:min(len(reasons), maxReasons)]}
}

// positionIn matches a position in a file of a package, and what is before it.
var positionIn = regexp.MustCompile(`(^|[ (])([a-zA-Z0-9_-]+\.cue):([0-9]+)`)

// maxQuoted bounds how much of a line is quoted, in characters: it may have a whole file as a text.
const maxQuoted = 120

// withLines returns a text with the line behind each position in some files.
func withLines(text string, files map[string]string) string {
	return positionIn.ReplaceAllStringFunc(text, func(whole string) string {
		m := positionIn.FindStringSubmatch(whole)
		content, known := files[m[2]]
		lines := strings.Split(content, "\n")
		line, err := strconv.Atoi(m[3])
		if !known || err != nil || line < 1 || line > len(lines) {
			return whole
		}
		text := strings.Join(strings.Fields(lines[line-1]), " ") // not as wide as the lines around it
		if runes := []rune(text); len(runes) > maxQuoted {
			text = string(runes[:maxQuoted]) + " and so on"
		}
		return whole + " `" + text + "`"
	})
}
