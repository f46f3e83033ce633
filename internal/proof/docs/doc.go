// Package docs reads the pages of the documentation. Its tests hold them to the code: links
// lead somewhere, commands name what exists, and troubleshooting has every reason and
// message. The generator of the site reads the same pages.
package docs
