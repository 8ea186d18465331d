"""What makes a release: packages, images, the chart, what they are made of, and under which licences.

It stands on the test bed, which builds the images; nothing of it is part of the product. docs/release.md is its recipe.
"""
