package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// A bill of materials in the format of SPDX 2.3, as far as this program writes it.
type bill struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creation       `json:"creationInfo"`
	Packages          []part         `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

// A part is the archive, the standard library of Go, or a module.
type part struct {
	SPDXID           string      `json:"SPDXID"`
	Name             string      `json:"name"`
	VersionInfo      string      `json:"versionInfo"`
	DownloadLocation string      `json:"downloadLocation"`
	FilesAnalyzed    bool        `json:"filesAnalyzed"`
	Checksums        []checksum  `json:"checksums,omitempty"`
	ExternalRefs     []reference `json:"externalRefs,omitempty"`
	// Comment has the sum of go.sum, which is not that of one file.
	Comment string `json:"comment,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// The identifiers of the document and of the archive that it is about.
const (
	documentID = "SPDXRef-DOCUMENT"
	archiveID  = "SPDXRef-Archive"
)

// billOf returns what the binary in an archive is made of, as the Go command has noted it in the binary.
func (r *release) billOf(built string, p platform) ([]byte, error) {
	info, err := buildinfo.ReadFile(built)
	if err != nil {
		return nil, fmt.Errorf("what the binary is made of: %w", err)
	}
	created, err := sourceDate()
	if err != nil {
		return nil, err
	}
	out := bill{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: documentID,
		Name:              fmt.Sprintf("operetta %s for %s/%s", r.Version, p.OS, p.Arch),
		DocumentNamespace: p.URI + "/" + p.Digest, // unique, as SPDX wants
		CreationInfo:      creation{created, []string{"Tool: operetta.dev/config/krew"}},
		Packages: []part{{
			SPDXID: archiveID, Name: info.Main.Path, VersionInfo: r.Version, DownloadLocation: p.URI,
			Checksums: []checksum{{"SHA256", p.Digest}}, ExternalRefs: []reference{located(info.Main.Path, r.Version)},
		}, standardLibrary(info)},
		Relationships: []relationship{{documentID, "DESCRIBES", archiveID}},
	}
	for _, d := range info.Deps {
		out.Packages = append(out.Packages, partOf(d))
	}
	for _, one := range out.Packages[1:] {
		out.Relationships = append(out.Relationships, relationship{archiveID, "DEPENDS_ON", one.SPDXID})
	}
	text, err := json.MarshalIndent(out, "", "  ")
	return append(text, '\n'), err
}

// sourceDate returns the time that the environment gives to the source: a clock would make each bill another one.
func sourceDate() (string, error) {
	seconds, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), "0"), 10, 64)
	if err != nil {
		return "", fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339), nil
}

// standardLibrary returns the part of Go itself.
func standardLibrary(info *debug.BuildInfo) part {
	version := strings.TrimPrefix(info.GoVersion, "go")
	return part{
		SPDXID: "SPDXRef-Go", Name: "std", VersionInfo: version, DownloadLocation: "https://go.dev/dl/" + info.GoVersion + ".src.tar.gz",
		ExternalRefs: []reference{located("std", version)},
	}
}

// notInID matches what an identifier of SPDX must not have.
var notInID = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// partOf returns the part of a module, or of what replaces it. It is downloaded from wherever its path leads, as the go command does.
func partOf(d *debug.Module) part {
	if d.Replace != nil {
		d = d.Replace
	}
	return part{
		SPDXID: "SPDXRef-Module-" + notInID.ReplaceAllString(d.Path+"-"+d.Version, "-"), Name: d.Path, VersionInfo: d.Version,
		DownloadLocation: "https://" + d.Path, ExternalRefs: []reference{located(d.Path, d.Version)}, Comment: d.Sum,
	}
}

// located returns the URL of a module by which scanners know it.
func located(path, version string) reference {
	segments := strings.Split(strings.ToLower(path), "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return reference{"PACKAGE-MANAGER", "purl", "pkg:golang/" + strings.Join(segments, "/") + "@" + url.QueryEscape(version)}
}
