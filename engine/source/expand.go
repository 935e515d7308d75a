package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"
)

// Expand returns the folders of operator packages that match patterns: a folder matches
// itself, and "dir/..." every operator package at or below dir.
// It errors when a folder does not exist, and when a "..." finds no package.
func Expand(patterns []string) ([]string, error) {
	var dirs []string
	for _, p := range patterns {
		found, err := expand(p)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, found...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

func expand(pattern string) ([]string, error) {
	root, recursive := strings.CutSuffix(filepath.ToSlash(pattern), "...")
	if !recursive {
		info, err := os.Stat(pattern)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", pattern, err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("package %s: not a folder; name the folder that holds the package", pattern)
		}
		return []string{filepath.Clean(pattern)}, nil
	}
	dirs, err := packagesBelow(filepath.Clean(root))
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("no operator package below %s: a package embeds operator.#Controller at its root", filepath.Clean(root))
	}
	return dirs, nil
}

// packagesBelow returns the folders at or below root that hold an operator
// package.
func packagesBelow(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		base := d.Name()
		if name != root && (base == "cue.mod" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return filepath.SkipDir
		}
		if embedsController(name) {
			dirs = append(dirs, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for packages below %s: %w", root, err)
	}
	return dirs, nil
}

// embedsController reports whether a file of the folder embeds the contract's
// #Controller at its root.
func embedsController(dir string) bool {
	_, root, rel, err := locate(dir)
	if err != nil {
		return false
	}
	d, err := openDisk(root)
	if err != nil {
		return false
	}
	defer d.root.Close()
	names, err := cueFiles(d, rel, "")
	if err != nil {
		return false
	}
	for _, name := range names {
		data, err := d.ReadFile(name)
		if err != nil {
			continue
		}
		// The parser returns the imports of a file up to the first syntax error, and a package
		// with a faulty file is still a package.
		f, _ := parser.ParseFile(name, data, parser.ImportsOnly)
		if f != nil && embedsAtRoot(data, contractName(f)) {
			return true
		}
	}
	return false
}

// embedsAtRoot reports whether a file embeds #Controller of an import at its root. It scans
// tokens instead of parsing the file: the parser is recursive, and a deeply nested file would
// overflow the stack.
func embedsAtRoot(data []byte, contract string) bool {
	if contract == "" {
		return false
	}
	var s scanner.Scanner
	s.Init(token.NewFile("", -1, len(data)), data, func(token.Pos, string, []any) {}, 0)
	want := []string{contract, ".", "#Controller"}
	var open []token.Token // brackets, and interpolations within strings
	matched, begins := 0, true
	for {
		_, tok, lit := s.Scan()
		if len(open) == 0 && matched == len(want) && (tok == token.COMMA || tok == token.EOF) {
			return true
		}
		switch {
		case tok == token.EOF:
			return false
		case len(open) > 0 || !begins && matched == 0 || matched == len(want):
			matched = 0
		case tok == token.IDENT && lit == want[matched], tok == token.PERIOD && want[matched] == ".":
			matched++
		default:
			matched = 0
		}
		open = openBrackets(&s, open, tok)
		begins = tok == token.COMMA
	}
}

// openBrackets returns the brackets and interpolations that are open after a token. The token of
// an interpolation is followed by a parenthesis of its own, and after that the string goes on.
func openBrackets(s *scanner.Scanner, open []token.Token, tok token.Token) []token.Token {
	switch tok {
	case token.LPAREN, token.LBRACE, token.LBRACK, token.INTERPOLATION:
		return append(open, tok)
	case token.RPAREN, token.RBRACE, token.RBRACK:
	default:
		return open
	}
	if len(open) > 0 {
		open = open[:len(open)-1]
	}
	inString := len(open) > 0 && open[len(open)-1] == token.INTERPOLATION
	if inString && !strings.HasSuffix(s.ResumeInterpolation(), "(") {
		return open[:len(open)-1]
	}
	return open
}

// contractName returns the name under which a file imports the contract, or "" if it does not
// import it.
func contractName(f *ast.File) string {
	for spec := range f.ImportSpecs() {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if imp, _, _ = strings.Cut(imp, "@"); imp != contractPrefix+"operator" {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return "operator"
	}
	return ""
}
