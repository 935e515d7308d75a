package main

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strings"
)

// junitSuites are results in the format of JUnit, as far as CI systems read it.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Package string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junitOf returns the results of tests in the format of JUnit, one suite for each package.
func junitOf(all []testedPackage) []byte {
	var out junitSuites
	for _, p := range all {
		suite := junitSuite{Name: p.Package, Tests: len(p.Tests)}
		if p.Error != "" {
			failure := &junitFailure{Message: "the package cannot be tested", Text: p.Error}
			suite.Tests, suite.Failures, suite.Cases = suite.Tests+1, 1, []junitCase{{Package: p.Package, Name: "the package", Failure: failure}}
		}
		for _, r := range p.Tests {
			c := junitCase{Package: p.Package, Name: r.Name, File: r.Position.File, Line: r.Position.Line}
			var lines []string
			for _, d := range r.Differences {
				lines = append(lines, d.String())
			}
			if len(lines) > 0 {
				c.Failure = &junitFailure{Message: lines[0], Text: strings.Join(lines, "\n")}
				suite.Failures++
			}
			suite.Cases = append(suite.Cases, c)
		}
		for _, e := range p.Explored {
			suite.Tests++
			c := junitCase{Package: p.Package, Name: e.Name + " (explored)", File: e.Position.File, Line: e.Position.Line}
			if failedExploration(e) {
				c.Failure = &junitFailure{Message: cmp.Or(e.Error, e.Schedule), Text: strings.Join(slices.Concat(e.Differences, e.Trace), "\n")}
				suite.Failures++
			}
			suite.Cases = append(suite.Cases, c)
		}
		out.Suites = append(out.Suites, suite)
	}
	data, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(err) // texts and numbers can always be written
	}
	return append([]byte(xml.Header), append(data, '\n')...)
}
