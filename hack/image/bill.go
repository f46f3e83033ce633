package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// unsaid is how SPDX writes that nobody determined a value.
const unsaid = "NOASSERTION"

// A document is an SPDX 2.3 document: the bill of materials of one image.
type document struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []part         `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
	Comment  string   `json:"comment"`
}

// A part is what SPDX calls a package.
type part struct {
	ID         string      `json:"SPDXID"`
	Name       string      `json:"name"`
	Version    string      `json:"versionInfo"`
	Purpose    string      `json:"primaryPackagePurpose"`
	Download   string      `json:"downloadLocation"`
	Analyzed   bool        `json:"filesAnalyzed"`
	Checksums  []checksum  `json:"checksums,omitempty"`
	SourceInfo string      `json:"sourceInfo,omitempty"`
	Concluded  string      `json:"licenseConcluded"`
	Declared   string      `json:"licenseDeclared"`
	Copyright  string      `json:"copyrightText"`
	References []reference `json:"externalRefs"`
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
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// bill returns the bill of materials of an image. It has no time of its own, so that two
// builds of one commit have the same.
func (o *order) bill(architecture string, digest v1.Hash, program []byte, modules []*module) ([]byte, error) {
	whole := part{
		ID: "SPDXRef-Image", Name: o.name, Version: o.version, Purpose: "CONTAINER", Declared: unsaid,
		Checksums:  []checksum{{"SHA256", digest.Hex}},
		References: purl(fmt.Sprintf("pkg:oci/%s@%s?arch=%s&tag=%s", strings.ToLower(o.name), url.QueryEscape(digest.String()), architecture, url.QueryEscape(o.version))),
	}
	d := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT",
		Name:      fmt.Sprintf("%s-%s-linux-%s", o.name, o.version, architecture),
		Namespace: "https://weir.dev/spdx/" + url.PathEscape(o.name) + "/" + digest.Hex,
		Creation: creation{
			Created: "1970-01-01T00:00:00Z", Creators: []string{"Tool: weir-image"},
			Comment: "The time is not that of the build, so that two builds of one commit have the same document.",
		},
		Packages:      []part{whole.filled()},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", whole.ID}},
	}
	for _, m := range modules {
		p := m.part()
		if m.main {
			sum := sha256.Sum256(program)
			p.Checksums, p.Purpose = []checksum{{"SHA256", hex.EncodeToString(sum[:])}}, "APPLICATION"
		}
		d.Packages = append(d.Packages, p.filled())
		d.Relationships = append(d.Relationships, relationship{whole.ID, "CONTAINS", p.ID})
	}
	out, err := json.MarshalIndent(d, "", "  ")
	return append(out, '\n'), err
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]`)

func (m *module) part() part {
	p := part{
		ID:   "SPDXRef-Module-" + notInID.ReplaceAllString(strings.ReplaceAll(m.path, "/", "--"), "."),
		Name: m.path, Version: m.version, Purpose: "LIBRARY", Declared: strings.Join(m.ids(), " AND "),
		References: purl("pkg:golang/" + strings.ToLower(m.path) + "@" + url.QueryEscape(strings.TrimPrefix(m.version, "go"))),
	}
	if m.sum != "" {
		p.SourceInfo = "the module has the sum " + m.sum + " in go.sum"
	}
	return p
}

// filled returns the part with what is the same for all.
func (p part) filled() part {
	p.Download, p.Concluded, p.Copyright = unsaid, unsaid, unsaid
	return p
}

func purl(locator string) []reference {
	return []reference{{"PACKAGE-MANAGER", "purl", locator}}
}
