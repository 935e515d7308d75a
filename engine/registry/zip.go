package registry

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"path"
	"testing/fstest"

	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"
	"cuelang.org/go/mod/modzip"
	"golang.org/x/mod/semver"
)

// checkZip errors if a content is a zip file whose files exceed the limits, by what it says of them. Whoever
// unpacks it reads no more than that.
func checkZip(data []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil //nolint:nilerr // it is another content
	}
	if len(archive.File) > maxEntries {
		return errorf(TooLarge, "the module has more than %d files", maxEntries)
	}
	total := uint64(0)
	for _, f := range archive.File {
		if f.UncompressedSize64 > maxUnpacked {
			total = maxUnpacked
		}
		if total += f.UncompressedSize64; total > maxUnpacked {
			return errorf(TooLarge, "the files of the module have more than %d bytes", maxUnpacked)
		}
	}
	return nil
}

// unpack returns the CUE files of a module, and its version: that of the tag if it names one.
func unpack(data []byte, tag string) (fs.FS, module.Version, error) {
	if err := checkZip(data); err != nil {
		return nil, module.Version{}, err
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, module.Version{}, errorf(NotModule, "the module is not a zip file")
	}
	v, err := versionOf(archive, tag)
	if err != nil {
		return nil, module.Version{}, err
	}
	if _, _, _, err := modzip.CheckZip(v, bytes.NewReader(data), int64(len(data))); err != nil {
		return nil, module.Version{}, errorf(NotModule, "its zip file is not that of a module")
	}
	files := fstest.MapFS{}
	for _, f := range archive.File {
		if path.Ext(f.Name) != ".cue" {
			continue
		}
		text, err := readEntry(f)
		if err != nil {
			return nil, module.Version{}, err
		}
		files[f.Name] = &fstest.MapFile{Data: text}
	}
	return files, v, nil
}

// readEntry reads a file of a zip file, and no more than that says it has.
func readEntry(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, errorf(NotModule, "its zip file is broken")
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, int64(f.UncompressedSize64)+1)) //nolint:gosec // checkZip has bounded it
	if err != nil || uint64(len(text)) != f.UncompressedSize64 {
		return nil, errorf(NotModule, "its zip file is broken")
	}
	return text, nil
}

// moduleFile is where a module declares its path.
const moduleFile = "cue.mod/module.cue"

// maxModuleFile bounds that file, in bytes: CUE evaluates it to read it.
const maxModuleFile = 16 << 10

// versionOf returns the version of a module in a zip file.
func versionOf(archive *zip.Reader, tag string) (module.Version, error) {
	for _, f := range archive.File {
		if f.Name != moduleFile {
			continue
		}
		if f.UncompressedSize64 > maxModuleFile {
			return module.Version{}, errorf(TooLarge, "%s of the module has more than %d bytes", moduleFile, maxModuleFile)
		}
		text, err := readEntry(f)
		if err != nil {
			return module.Version{}, err
		}
		declared, err := modfile.ParseNonStrict(text, moduleFile)
		if err != nil {
			return module.Version{}, errorf(NotModule, "%s of the module cannot be read", moduleFile)
		}
		version := declared.MajorVersion() + ".0.0"
		if semver.Canonical(tag) == tag && semver.Major(tag) == declared.MajorVersion() {
			version = tag
		}
		out, err := module.NewVersion(declared.QualifiedModule(), version)
		if err != nil {
			return module.Version{}, errorf(NotModule, "%s of the module names no module", moduleFile)
		}
		return out, nil
	}
	return module.Version{}, errorf(NotModule, "the module has no %s", moduleFile)
}
