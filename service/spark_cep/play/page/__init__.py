"""The page: NiceGUI's elements around the model, and the server that hands it out.

NiceGUI brings the server (Uvicorn), the editor (CodeMirror), the drawing (Mermaid), the table (AG
Grid) and the chart (ECharts) in its wheel, so that the page needs no other site and no build of
ours.
"""
